package fuzz

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/triegs/triegs"
)

// streamRow is one line of a shared stream.
type streamRow struct {
	at         int64 // nanoseconds
	label      string
	src, dst   string
	value      string // "" where the line has none
	from, to   uint64 // hashes of src and dst
	srcT, dstT triegs.Term
}

// readStream reads shared streams one behind the other, or skips the test.
func readStream(t *testing.T, names ...string) (rows []streamRow) {
	t.Helper()
	hashes := map[string]uint64{}
	known := map[string]triegs.Term{}
	node := func(s string) (uint64, triegs.Term) {
		if _, ok := hashes[s]; !ok {
			h := fnv.New64a()
			h.Write([]byte(s))
			hashes[s], known[s] = h.Sum64(), triegs.String(s)
		}
		return hashes[s], known[s]
	}
	for _, name := range names {
		z, err := gzip.NewReader(sharedFile(t, "data/"+name+".tsv.gz"))
		if err != nil {
			t.Fatal(err)
		}
		for in := bufio.NewScanner(z); in.Scan(); {
			f := strings.Split(in.Text(), "\t")
			ms, err := strconv.ParseInt(f[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			r := streamRow{at: ms * 1e6, label: f[1], src: f[2], dst: f[3]}
			if len(f) > 4 {
				r.value = f[4]
			}
			r.from, r.srcT = node(r.src)
			r.to, r.dstT = node(r.dst)
			rows = append(rows, r)
		}
	}
	return rows
}

// joinAtom is one atom of a query as the recomputation reads it.
type joinAtom struct {
	label    string
	src, dst string        // names of variables
	span     time.Duration // of the window, 0 = sees everything
	slide    time.Duration
	last     int
}

// streamQuery is a query twice: as text, and as what the recomputation joins. All
// variables are put out, so that every valuation is an answer.
type streamQuery struct {
	text  string
	head  []string
	atoms []joinAtom
}

// neighbour is the other end of the equal edges of a node.
type neighbour struct {
	hash uint64
	n    int64
}

// joined sums up the answers of a query.
type joined struct {
	distinct, total int64
	sum             uint64 // over the answers, whatever their order
}

// mixTerm adds the next term to the hash of an answer.
func mixTerm(h, term uint64) uint64 {
	h = (h ^ term) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// add counts one answer.
func (j *joined) add(h uint64, n int64) {
	j.distinct++
	j.total += n
	j.sum += (h ^ h>>31) * (2*uint64(n) + 1)
}

// seen are the rows that an atom sees at a time, of those that have come.
func (a *joinAtom) seen(rows []streamRow, now int64) (out []streamRow) {
	end := now
	if a.slide > 0 {
		end -= end % int64(a.slide) // no time is negative here
	}
	for _, r := range rows {
		if r.label == a.label && (a.span == 0 || r.at <= end && r.at > end-int64(a.span)) {
			out = append(out, r)
		}
	}
	if a.last > 0 {
		out = out[max(0, len(out)-a.last):]
	}
	return out
}

// joinStep extends a valuation by one atom.
type joinStep struct {
	byEnd    [2]map[uint64][]neighbour // the other ends, by source and by target
	src, dst int                       // places of the variables
}

// recompute joins the rows from the beginning: each atom is an index over what it
// sees, and the atoms are walked one after the other.
func (q *streamQuery) recompute(rows []streamRow, now int64) (out joined) {
	places := map[string]int{}
	var steps []joinStep
	for i := range q.atoms {
		a := &q.atoms[i]
		s := joinStep{byEnd: [2]map[uint64][]neighbour{{}, {}}}
		for _, v := range []string{a.src, a.dst} {
			if _, ok := places[v]; !ok {
				places[v] = len(places)
			}
		}
		s.src, s.dst = places[a.src], places[a.dst]
		count := map[[2]uint64]int64{}
		for _, r := range a.seen(rows, now) {
			count[[2]uint64{r.from, r.to}]++
		}
		for edge, n := range count {
			s.byEnd[0][edge[0]] = append(s.byEnd[0][edge[0]], neighbour{edge[1], n})
			s.byEnd[1][edge[1]] = append(s.byEnd[1][edge[1]], neighbour{edge[0], n})
		}
		steps = append(steps, s)
	}
	order := make([]int, len(q.head))
	for i, v := range q.head {
		order[i] = places[v]
	}
	walkJoin(steps, make([]uint64, len(places)), make([]bool, len(places)), 1, func(values []uint64, n int64) {
		h := uint64(0)
		for _, p := range order {
			h = mixTerm(h, values[p])
		}
		out.add(h, n)
	})
	return out
}

// walkJoin tries every edge that fits the values so far.
func walkJoin(steps []joinStep, values []uint64, bound []bool, n int64, visit func([]uint64, int64)) {
	if len(steps) == 0 {
		visit(values, n)
		return
	}
	s := &steps[0]
	follow := func(to int, list []neighbour) {
		was := bound[to]
		for _, e := range list {
			if was && values[to] != e.hash {
				continue
			}
			old := values[to]
			values[to], bound[to] = e.hash, true
			walkJoin(steps[1:], values, bound, n*e.n, visit)
			values[to] = old
		}
		bound[to] = was
	}
	switch {
	case bound[s.src]:
		follow(s.dst, s.byEnd[0][values[s.src]])
	case bound[s.dst]:
		follow(s.src, s.byEnd[1][values[s.dst]])
	default:
		for from, list := range s.byEnd[0] {
			values[s.src], bound[s.src] = from, true
			follow(s.dst, list)
		}
		bound[s.src] = false
	}
}

// streamSums gives what the engine says of a query.
func streamSums(w *world, s *triegs.Snapshot, name string, hashes map[triegs.Term]uint64) (out joined) {
	w.Helper()
	for r, err := range s.Answers(name) {
		if err != nil {
			w.Fatal(err)
		}
		h := uint64(0)
		for i := range r.Columns() {
			h = mixTerm(h, hashes[r.Term(i)])
		}
		out.add(h, r.Multiplicity())
	}
	distinct, total, err := s.Count(w.ctx, name)
	if err != nil || distinct != out.distinct || total != out.total {
		w.Fatalf("count of %s: %d, %d, %v; enumerated %d, %d", name, distinct, total, err, out.distinct, out.total)
	}
	return out
}

// realStream is a shared stream with queries over it.
type realStream struct {
	name    string
	files   []string
	static  func(r *streamRow) bool // nil: every row belongs to the stream
	most    int                     // rows of a batch; 0 = those of one time
	queries []streamQuery
}

// samples is how many states of a stream are recomputed.
const samples = 50

// load splits a stream into what is there before and the batches.
func (s *realStream) load(t *testing.T) (before []streamRow, batches [][]streamRow) {
	rows := readStream(t, s.files...)
	if s.static != nil {
		i := 0
		for i < len(rows) && s.static(&rows[i]) {
			i++
		}
		before, rows = rows[:i:i], rows[i:]
	}
	if testing.Short() {
		rows = rows[:min(len(rows), len(rows)/10+1_000)]
	}
	r := rand.New(rand.NewPCG(11, uint64(len(rows))))
	for len(rows) > 0 {
		n := 1
		if s.most > 0 {
			n = 1 + r.IntN(min(s.most, len(rows)))
		}
		// Rows of one time stay together, so that a time says which of them have
		// come.
		for n < len(rows) && rows[n].at == rows[n-1].at {
			n++
		}
		batches, rows = append(batches, rows[:n:n]), rows[n:]
	}
	return before, batches
}

// streamEvents makes events of rows.
func streamEvents(rows []streamRow) (out []triegs.Event) {
	for _, r := range rows {
		out = append(out, triegs.Event{Relation: r.label, Tuple: []triegs.Term{r.srcT, r.dstT}, Time: time.Unix(0, r.at)})
	}
	return out
}

// play runs a stream and compares at the sampled times. In event-time mode the
// rows arrive in disorder, and the watermark says up to where they are complete.
func (s *realStream) play(t *testing.T, eventTime bool) {
	before, batches := s.load(t)
	w := newWorld(t, "", &triegs.Options{Clock: still, Tick: -1, EventTime: eventTime})
	for _, q := range s.queries {
		name, _, _ := strings.Cut(q.text, "(")
		w.register(name, q.text)
	}
	hashes := map[triegs.Term]uint64{}
	come := slices.Clone(before)
	r := rand.New(rand.NewPCG(5, 5))
	offset := uint64(0)
	feed := func(rows []streamRow, at int64) {
		for _, row := range rows {
			hashes[row.srcT], hashes[row.dstT] = row.from, row.to
		}
		b := triegs.Batch{Events: streamEvents(rows), Time: time.Unix(0, at)}
		if eventTime {
			b.Source, b.Offset, b.Time, b.Watermark = "s", offset, time.Time{}, time.Unix(0, at)
			offset += uint64(len(rows))
		}
		w.append(b)
	}
	if len(before) > 0 {
		feed(before, before[len(before)-1].at)
	}
	var held []streamRow // event time: rows that have not been fed
	compared, answers := 0, int64(0)
	start := time.Now()
	for i, rows := range batches {
		at := rows[len(rows)-1].at
		come, held = append(come, rows...), append(held, rows...)
		sample := (i+1)*samples/len(batches) > i*samples/len(batches) || i == len(batches)-1
		switch {
		case !eventTime:
			feed(held, at)
		case sample || i%3 == 0:
			disorder(r, held)
			feed(held, at)
		default: // they come before their time
			disorder(r, held)
			least := slices.MinFunc(held, func(a, b streamRow) int { return cmp.Compare(a.at, b.at) })
			feed(held, least.at-1)
		}
		held = held[:0]
		if !sample {
			continue
		}
		compared++
		snap := w.snapshot()
		for _, q := range s.queries {
			name, _, _ := strings.Cut(q.text, "(")
			want := q.recompute(come, at)
			if got := streamSums(w, snap, name, hashes); got != want {
				t.Fatalf("%s at %s, batch %d: got %+v, want %+v", name, time.Unix(0, at).UTC(), i, got, want)
			}
			answers += want.distinct
		}
		snap.Close()
	}
	m := w.db.Metrics()
	t.Logf("%d rows in %d batches, %d queries, %d states compared with %d answers, %d expired, %d left, %s",
		len(come), len(batches), len(s.queries), compared, answers, m.Expired, m.Contributions, time.Since(start).Round(time.Millisecond))
	if answers == 0 || m.Expired == 0 {
		t.Error("this shows nothing")
	}
}

// disorder shuffles rows; those of one time keep their order, which is that of
// their appends.
func disorder(r *rand.Rand, rows []streamRow) {
	place := map[int64]int{}
	for _, row := range rows {
		place[row.at] = r.Int()
	}
	slices.SortStableFunc(rows, func(a, b streamRow) int { return cmp.Compare(place[a.at], place[b.at]) })
}

// Windows over real streams give what a join over the rows gives that the window
// holds, at fifty times.
func TestRealStreams(t *testing.T) {
	const hour, day = time.Hour, 24 * time.Hour
	for _, s := range []realStream{
		{
			name: "traffic", files: []string{"citybench-traffic"}, static: func(r *streamRow) bool { return r.at == 0 },
			queries: []streamQuery{{
				"next(o, s, p, u, v) :- vehicleCount(o, s)[15m slide 5m], endsAt(s, p), startsAt(u, p), avgSpeed(v, u)[15m slide 5m].",
				[]string{"o", "s", "p", "u", "v"},
				[]joinAtom{
					{"vehicleCount", "o", "s", 15 * time.Minute, 5 * time.Minute, 0}, {"endsAt", "s", "p", 0, 0, 0},
					{"startsAt", "u", "p", 0, 0, 0}, {"avgSpeed", "v", "u", 15 * time.Minute, 5 * time.Minute, 0},
				},
			}, {
				"both(o, s, v) :- vehicleCount(o, s), avgSpeed(v, s) window 15m slide 5m.", []string{"o", "s", "v"},
				[]joinAtom{{"vehicleCount", "o", "s", 15 * time.Minute, 5 * time.Minute, 0}, {"avgSpeed", "v", "s", 15 * time.Minute, 5 * time.Minute, 0}},
			}},
		},
		{
			name: "messages", files: []string{"collegemsg"}, most: 40,
			queries: []streamQuery{{
				"paths(a, b, c, d) :- sent(a, b), sent(b, c), sent(c, d) window 24h.", []string{"a", "b", "c", "d"},
				[]joinAtom{{"sent", "a", "b", day, 0, 0}, {"sent", "b", "c", day, 0, 0}, {"sent", "c", "d", day, 0, 0}},
			}, {
				"hour(a, b, c) :- sent(a, b)[1h], sent(b, c)[24h].", []string{"a", "b", "c"},
				[]joinAtom{{"sent", "a", "b", hour, 0, 0}, {"sent", "b", "c", day, 0, 0}},
			}},
		},
		{
			name: "ratings", files: []string{"bitcoin-otc"}, most: 25,
			queries: []streamQuery{{
				"chain(a, b, c) :- rates(a, b)[30d], rates(b, c)[90d].", []string{"a", "b", "c"},
				[]joinAtom{{"rates", "a", "b", 30 * day, 0, 0}, {"rates", "b", "c", 90 * day, 0, 0}},
			}, {
				"newest(a, b, c) :- rates(a, b), rates(c, b) last 500.", []string{"a", "b", "c"},
				[]joinAtom{{"rates", "a", "b", 0, 0, 500}, {"rates", "c", "b", 0, 0, 500}},
			}},
		},
		{
			name: "social network", files: []string{"ldbc-snb-p250-initial", "ldbc-snb-p250-updates"}, most: 60,
			static: func(r *streamRow) bool { return r.at < 1290600000000*1e6 },
			queries: []streamQuery{{
				"replies(c, m, p, q) :- replyOf(c, m), hasCreator(c, p), hasCreator(m, q) window 10d.", []string{"c", "m", "p", "q"},
				[]joinAtom{{"replyOf", "c", "m", 10 * day, 0, 0}, {"hasCreator", "c", "p", 10 * day, 0, 0}, {"hasCreator", "m", "q", 10 * day, 0, 0}},
			}, {
				"liked(p, m, q, t) :- likes(p, m)[10d], hasCreator(m, q), hasTag(m, t).", []string{"p", "m", "q", "t"},
				[]joinAtom{{"likes", "p", "m", 10 * day, 0, 0}, {"hasCreator", "m", "q", 0, 0, 0}, {"hasTag", "m", "t", 0, 0, 0}},
			}},
		},
	} {
		for _, eventTime := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, event time %v", s.name, eventTime), func(t *testing.T) { s.play(t, eventTime) })
		}
	}
}
