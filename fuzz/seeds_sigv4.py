#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seed corpus of the target `sigv4` below fuzz/corpus/: lines of
lib/secret/sigv4/test/sigv4_rig.h."""
import pathlib

corpus = pathlib.Path(__file__).parent / "corpus" / "sigv4"
SENTINEL, SIG = "AKIAPROXYMANAGED2222", "0" * 64
IAM = "now 1440938160\nhost iam.amazonaws.com\nheader x-amz-date 20150830T123600Z\n"
S3 = "now 1369353600\nhost b.s3.amazonaws.com\nheader x-amz-date 20130524T000000Z\n"


def auth(scope, headers="host;x-amz-date", algorithm="AWS4-HMAC-SHA256"):
    return (f"header authorization {algorithm} Credential={SENTINEL}/{scope}/aws4_request, "
            f"SignedHeaders={headers}, Signature={SIG}\n")


def url(extra=""):
    return (
        f"query a=%7e+b&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={SENTINEL}%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
            f"&X-Amz-Date=20130524T000000Z&X-Amz-Expires=3600&X-Amz-SignedHeaders=host&X-Amz-Signature={SIG}{extra}\n")


def chunks(*parts, trailer=b""):
    body = b"".join(b"%x;chunk-signature=%s\r\n" % (len(p),
                                                    SIG.encode())
                    + (p + b"\r\n" if p or not trailer else b"") for p in parts)
    return "step 7\nbody " + (body + trailer).hex() + "\n"


TRAILER = b"x-amz-checksum-crc32c:sOO8/Q==\r\nx-amz-trailer-signature:" + SIG.encode() + b"\r\n\r\n"
STREAM = "header x-amz-content-sha256 STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
seeds = {
    "list_users": IAM + "query Action=ListUsers&Version=2010-05-08\n"
    + auth("20150830/us-east-1/iam"),
    "post": IAM + "method POST\npath /a/../b//c%20d\nbody 414243\nheader x-a  b  c\nheader x-a d\n"
    +
            auth("20150830/us-east-1/iam", "content-length;host;x-a;x-amz-date"),
    "unsigned": IAM,
    "presigned": S3 + "path /k%2Fey$\n" + url(),
    "presigned_token": S3 + url("&X-Amz-Security-Token=t"),
    "presigned_twice": S3 + url("&X-Amz-Date=1"),
    "disguised": S3 + "query x%2Damz-signature=1\n",
    "both": S3 + url() + auth("20130524/us-east-1/s3"),
    "sigv4a": S3 + auth("20130524/s3", algorithm="AWS4-ECDSA-P256-SHA256"),
    "old": S3 + f"header authorization AWS {SENTINEL}:abc=\n",
    "other_host": S3 + auth("20130524/eu-west-1/sts"),
    "other_day": S3 + auth("20130525/us-east-1/s3"),
    "chunks": S3 + "method PUT\n" + STREAM + "\n" + auth("20130524/us-east-1/s3")
    + chunks(b"abc", b"d" * 20, b""),
    "trailer": S3 + "method PUT\n" + STREAM + "-TRAILER\n" + auth("20130524/us-east-1/s3")
    + chunks(b"abc", b"", trailer=TRAILER),
    "cut_off": S3 + "method PUT\n" + STREAM + "\n" + auth("20130524/us-east-1/s3") + chunks(b"abc"),
    "no_hash": IAM + "method POST\nlength 8388609\n" + auth("20150830/us-east-1/iam"),
    "unsigned_payload": S3
    + "method PUT\nchunked\nheader x-amz-content-sha256 STREAMING-UNSIGNED-PAYLOAD-TRAILER\n" +
                        auth("20130524/us-east-1/s3"),
}
corpus.mkdir(parents=True, exist_ok=True)
for name, text in seeds.items():
    (corpus / name).write_text(text)
