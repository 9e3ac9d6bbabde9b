/* Where an answer is looked through for the value before edge has it. */
#include "origin.h"

int answer_scrub_head(struct origin *o, struct exchange *x, struct http_resp *resp)
{
	return answer_put_head(x, resp);
}

int answer_scrub(struct origin *o, struct exchange *x, struct slice data)
{
	return answer_put_data(x, data);
}

int answer_scrub_end(struct origin *o, struct exchange *x, struct http_headers *trailers)
{
	return answer_put_end(x, trailers);
}

int answer_scrub_raw(struct origin *o, struct exchange *x, struct slice data)
{
	return out_put(&x->to_edge, data);
}

void answer_scrub_done(struct exchange *x)
{
}
