// Package server offers a store over HTTP: answers by pages, counts, single answers,
// what changes as a stream of server-sent events, and appends. It is a handler for
// net/http over the public API of the root package; it owns the routes, the JSON, the
// codes of errors and the limits. It never logs, and keeps no state of its own but
// open pages and streams.
//
// # Types
//
// [New] makes a [Handler] of a DB and [Options]. [Handler.Close] ends its streams
// and pages; it goes before DB.Close. Options.Authorize says who may do what: it is
// told the [Action] of every request, and a [Refusal] from it chooses the status.
//
// # Routes
//
//	GET    /health                      {"status":"ok","epoch":7}
//	GET    /stats                       metrics, offsets of sources, streams and pages
//	GET    /queries                     all queries: name, text, columns, class, ...
//	GET    /queries/NAME                one of them
//	POST   /queries/NAME                register the text that is the body;
//	                                    set=1 distinct=1 window=10m slide=1m
//	DELETE /queries/NAME                drop it
//	GET    /queries/NAME/answers        a page of answers; limit=N, after=CURSOR
//	DELETE /queries/NAME/answers        let go of the pages of after=CURSOR
//	GET    /queries/NAME/count          distinct answers and their total
//	GET    /queries/NAME/lookup         one answer; where.COLUMN=TERM for each column
//	GET    /queries/NAME/updates        server-sent events, see below
//	GET    /subscribers                 the names of subscribers and where they are
//	POST   /subscribers/NAME            acknowledges token=TOKEN
//	DELETE /subscribers/NAME            forget the name
//	POST   /append                      events as jsonl; source=NAME offset=N, batch=N,
//	                                    ignore_missing=1
//
// HEAD is GET without the body (and without opening a page or a stream), OPTIONS
// names the methods. A parameter that a route does not have is refused, and so is one
// that is there twice. A TERM is JSON as in jsonl input: "Max" with its quotes, 7,
// {"iri":"..."}. Rows and changes are the objects of the command line's --output
// jsonl; what does not fit in int64 has "error":"overflow".
//
// # Pages
//
// All pages of a walk are of one epoch, which the first one pins. "next" is the cursor
// of the page behind, absent on the last; "token" is the position from which updates
// go on. A page ends at the limit, or earlier where it becomes large (1 MiB). The
// same cursor gives the same page again until the next one was asked for, so that a
// broken connection loses nothing. A walk that is not asked for a while, or goes on for
// too long, is gone: 410 with code page_expired.
//
// # Updates
//
// The stream begins now; with snapshot=1 with the whole answer; with from=TOKEN, or
// the header Last-Event-ID, which goes before both, behind that position. With
// snapshot=1 a position that is not kept any more begins with the whole answer again;
// else it is 410. each=1 makes an event of every epoch, as long as no more than
// Options.Buffer wait; where-columns select answers (where.COLUMN=TERM), part=N limits
// the changes of an event.
//
// An update is one event, whatever its size, and is written as it is walked:
//
//	data: {"query":"q","epoch":5,"from":3,"whole":false,"time":"...","offsets":{},"changes":[
//	data: {"epoch":5,"query":"q","x":"a","old":0,"new":1}
//	data: ,{"epoch":5,"query":"q","x":"b","old":2,"new":0}
//	data: ],"token":"t1.AbC"}
//	event: update
//	id: t1.AbC
//
// Kind and id come last, and an event counts only with the empty line behind it. So a
// connection that breaks in the middle leaves the client at the id before, and going on
// from there repeats and omits nothing. A whole update takes the place of all that the
// client has. With part=N the changes come in events of kind part, without id, which
// belong to the update that follows them.
//
// What changes nothing is not told by itself, except with each=1: an event of kind
// progress, with the id of its position, comes instead with the heartbeat. Where there
// is no progress either the heartbeat is a comment. An event of kind end, with the
// error and without id, says why the stream ends.
//
// # Names
//
// as=NAME makes the client a subscriber whose place the store keeps, also over a
// restart: it goes on behind what it has acknowledged, epoch by epoch, and what it has
// not is kept for it. It acknowledges with POST while its stream is open, and by the
// Last-Event-ID with which it comes again. from= and snapshot=1 say where a new name
// begins; one that has acknowledged nothing begins with the whole answer again, unless its
// Last-Event-ID is still kept. A stream takes the name from another one that has it,
// whose client mostly is gone. An id behind what was acknowledged is 409: the client has
// lost what it had.
//
// # Limits
//
// Streams, pages and names are limited in number (503 with Retry-After), bodies and
// parameters in size (413, 414). Every write has a deadline, so that a client that does
// not read is ended and lets go of its epoch; what it keeps until then is memory, never
// the writer's time. Unsafe requests of web pages from elsewhere are refused.
//
// # Guarantees
//
//   - No goroutine outlives its request, except that an open page keeps the state of its
//     enumeration until it expires.
//   - A request that is refused has changed nothing, but for whole batches of an append
//     before the one at fault; the error tells how many.
//   - Errors are {"error":{"code":"...","message":"..."}}; codes are fixed.
//
// # Caveats
//
// Deadlines want a ResponseWriter that http.ResponseController can set them on, which
// those of net/http are; a wrapper around it has to have Unwrap. A token can be
// gone on from as long as the store keeps its epoch: see Options.RetainedEpochs of
// the root package.
package server
