package hypergraph

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// letters turns "ab" into variables 0 and 1.
func letters(s string) []int {
	var vs []int
	for _, r := range s {
		vs = append(vs, int(r-'a'))
	}
	return vs
}

func parse(atoms string) [][]int {
	var es [][]int
	for _, a := range strings.Split(atoms, " ") {
		es = append(es, letters(strings.Trim(a, "-")))
	}
	return es
}

func TestClasses(t *testing.T) {
	// A lone "-" is an atom without variables.
	for _, tc := range []struct{ atoms, out, flags, name string }{
		{"ab", "ab", "full acyclic free-connex strong-connex q-hierarchical exists-hierarchical head-cluster", "full acyclic"},
		{"-", "", "full acyclic free-connex strong-connex q-hierarchical exists-hierarchical head-cluster", "full acyclic"},
		{"- - a", "a", "full acyclic free-connex strong-connex q-hierarchical exists-hierarchical head-cluster", "full acyclic"},
		{"ab cd", "abcd", "full acyclic free-connex strong-connex q-hierarchical exists-hierarchical head-cluster", "full acyclic"},
		{"ab bc cd", "abcd", "full acyclic free-connex strong-connex exists-hierarchical head-cluster", "full acyclic"},
		{"ab bc ca", "abc", "full exists-hierarchical head-cluster", "cyclic"},
		{"ab bc ca abc", "abc", "full acyclic free-connex strong-connex exists-hierarchical head-cluster", "full acyclic"},
		{"ab bc cd da", "abcd", "full exists-hierarchical head-cluster", "cyclic"},
		{"abc bcd cda dab", "abcd", "full exists-hierarchical head-cluster", "cyclic"},
		{"ab bc", "ac", "acyclic exists-hierarchical", "acyclic"},
		{"ab bc", "a", "acyclic free-connex exists-hierarchical", "free-connex"},
		{"ab b", "", "acyclic free-connex strong-connex q-hierarchical exists-hierarchical head-cluster", "q-hierarchical"},
		{"a ab b", "", "acyclic free-connex head-cluster", "free-connex"},
		{"a ab", "b", "acyclic free-connex exists-hierarchical", "free-connex"},
		{"ab cb", "b", "acyclic free-connex strong-connex q-hierarchical exists-hierarchical head-cluster", "q-hierarchical"},
		{"abx abx b", "ab", "acyclic free-connex strong-connex q-hierarchical exists-hierarchical head-cluster", "q-hierarchical"},
		{"abx abx b a", "ab", "acyclic free-connex strong-connex exists-hierarchical head-cluster", "strong-connex"},
		{"aab aa", "ab", "full acyclic free-connex strong-connex q-hierarchical exists-hierarchical head-cluster", "full acyclic"},
	} {
		c := Analyze(parse(tc.atoms), letters(tc.out)).Class
		if c.Flags() != tc.flags || c.Name() != tc.name {
			t.Errorf("%s -> %q:\n got %s (%s)\nwant %s (%s)", tc.atoms, tc.out, c.Flags(), c.Name(), tc.flags, tc.name)
		}
	}
}

func TestCores(t *testing.T) {
	for _, tc := range []struct {
		atoms, out  string
		kind        CoreKind
		vars        string
		coreAtoms   []int
		ring, whole bool
	}{
		{"ab bc", "ac", FreePathCore, "abc", []int{0, 1}, false, false},
		{"ab bc cd de e", "ad", FreePathCore, "abcd", []int{0, 1, 2}, false, false},
		// The running example projected on z: v is shared by hasReply and
		// hasCreator, z is only in hasReply.
		{"vx zy vz zw", "z", QCore, "vz", []int{2, 0}, false, false},
		{"a ab b", "", ExistsHierarchyCore, "ab", []int{0, 1, 2}, false, false},
		{"xy ab bc ca", "abcxy", CycleCore, "abc", []int{1, 2, 3}, true, false},
		{"ab bc cd da", "abcd", CycleCore, "abcd", []int{0, 1, 2, 3}, true, false},
		{"abc bcd cda dab", "abcd", CycleCore, "abcd", []int{1, 2, 3, 0}, false, false},
	} {
		a := Analyze(parse(tc.atoms), letters(tc.out))
		c := a.Core
		if c == nil || c.Kind != tc.kind || !slices.Equal(c.Vars, letters(tc.vars)) ||
			!slices.Equal(c.Atoms, tc.coreAtoms) || c.Ring != tc.ring || c.Unreduced != tc.whole {
			t.Errorf("%s -> %q: got %+v", tc.atoms, tc.out, c)
		}
	}
}

// vector is a line of classes.json.
type vector struct {
	Atoms               []string
	Out                 string
	Acyclic             bool
	FreeConnex          bool `json:"free_connex"`
	StrongConnex        bool `json:"strong_connex"`
	QHierarchical       bool `json:"q_hierarchical"`
	ExistsHierarchyCore bool `json:"exists_hierarchy_core"`
	QCore               bool `json:"q_core"`
}

func TestVectors(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "vectors", "classes.json"))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the shared class vectors are not here")
	}
	if err != nil {
		t.Fatal(err)
	}
	var vs []vector
	if err := json.Unmarshal(b, &vs); err != nil {
		t.Fatal(err)
	}
	for i, v := range vs {
		var atoms [][]int
		for _, s := range v.Atoms {
			atoms = append(atoms, letters(s))
		}
		a := Analyze(atoms, letters(v.Out))
		got := [6]bool{a.Class.Acyclic, a.Class.FreeConnex, a.Class.StrongConnex, a.Class.QHierarchical, a.ExistsHierarchy != nil, a.Q != nil}
		want := [6]bool{v.Acyclic, v.FreeConnex, v.StrongConnex, v.QHierarchical, v.ExistsHierarchyCore, v.QCore}
		if got != want {
			t.Errorf("vector %d, %v -> %q: got %v, want %v", i, v.Atoms, v.Out, got, want)
		}
		checkCores(t, atoms, letters(v.Out), a)
	}
	t.Logf("%d vectors", len(vs))
}

// checkCores checks each core against its definition, and that a core is there
// exactly when the class fails.
func checkCores(t *testing.T, atoms [][]int, out []int, a Analysis) {
	t.Helper()
	if (a.Core == nil) != a.Class.StrongConnex ||
		(a.Q == nil) != a.Class.HeadCluster || (a.ExistsHierarchy == nil) != a.Class.ExistsHierarchical {
		t.Fatalf("%v -> %v: cores do not match the class %v", atoms, out, a.Class)
	}
	for _, c := range []*Core{a.Core, a.Q, a.ExistsHierarchy} {
		if c != nil && !coreHolds(atoms, out, c) {
			t.Fatalf("%v -> %v: core does not hold: %+v", atoms, out, *c)
		}
	}
	if a.Core != nil {
		switch {
		case (a.Core.Kind == CycleCore) == a.Class.Acyclic,
			(a.Core.Kind == FreePathCore) != (a.Class.Acyclic && !a.Class.FreeConnex):
			t.Fatalf("%v -> %v: core %v for class %v", atoms, out, a.Core.Kind, a.Class)
		}
	}
}

func coreHolds(atoms [][]int, out []int, c *Core) bool {
	in := func(v, atom int) bool { return slices.Contains(atoms[c.Atoms[atom]], c.Vars[v]) }
	isOut := func(v int) bool { return slices.Contains(out, c.Vars[v]) }
	n := len(c.Vars)
	switch c.Kind {
	case QCore:
		return in(0, 0) && in(0, 1) && !isOut(0) && in(1, 0) && !in(1, 1) && isOut(1)
	case ExistsHierarchyCore:
		return in(0, 0) && !in(1, 0) && in(0, 1) && in(1, 1) && !in(0, 2) && in(1, 2) && !isOut(0) && !isOut(1)
	case FreePathCore:
		for i := range n {
			if (i == 0 || i == n-1) != isOut(i) {
				return false
			}
		}
		return n >= 3 && len(c.Atoms) == n-1 && chordless(atoms, c.Vars, false) && stepsHold(in, n-1, n)
	case CycleCore:
		if c.Ring {
			return n >= 3 && len(c.Atoms) == n && chordless(atoms, c.Vars, true) && stepsHold(in, n, n)
		}
		return n >= 4 && len(c.Atoms) == n && missesOneEach(atoms, c, in)
	}
	return false
}

// stepsHold checks that atom i holds the variables i and i+1.
func stepsHold(in func(v, atom int) bool, steps, n int) bool {
	for i := range steps {
		if !in(i, i) || !in((i+1)%n, i) {
			return false
		}
	}
	return true
}

// chordless checks that no atom holds two variables that are not neighbours on
// the path or ring (and for a ring of three that none holds all).
func chordless(atoms [][]int, vars []int, ring bool) bool {
	n := len(vars)
	for _, a := range atoms {
		held := 0
		for i := range n {
			if slices.Contains(a, vars[i]) {
				held++
			}
			for j := i + 2; j < n; j++ {
				if ring && i == 0 && j == n-1 {
					continue
				}
				if slices.Contains(a, vars[i]) && slices.Contains(a, vars[j]) {
					return false
				}
			}
		}
		if held > 2 {
			return false
		}
	}
	return true
}

func missesOneEach(atoms [][]int, c *Core, in func(v, atom int) bool) bool {
	for i := range c.Vars {
		for v := range c.Vars {
			if in(v, i) == (v == i) {
				return false
			}
		}
	}
	for _, a := range atoms {
		all := true
		for _, v := range c.Vars {
			all = all && slices.Contains(a, v)
		}
		if all {
			return false
		}
	}
	return true
}

// definitionAcyclic is GYO as it is told in words, on sets of letters.
func definitionAcyclic(atoms [][]int) bool {
	var es []map[int]bool
	for _, a := range atoms {
		e := map[int]bool{}
		for _, v := range a {
			e[v] = true
		}
		es = append(es, e)
	}
	for changed := true; changed; {
		changed = false
		deg := map[int]int{}
		for _, e := range es {
			for v := range e {
				deg[v]++
			}
		}
		for _, e := range es {
			for v := range e {
				if deg[v] == 1 {
					delete(e, v)
					changed = true
				}
			}
		}
		for i := 0; i < len(es); i++ {
			for j := range es {
				if i != j && within(es[i], es[j]) {
					es = slices.Delete(es, i, i+1)
					i--
					changed = true
					break
				}
			}
		}
	}
	return len(es) <= 1
}

func within(a, b map[int]bool) bool {
	for v := range a {
		if !b[v] {
			return false
		}
	}
	return true
}

// TestRandom compares with the definitions: free-connex is acyclic with and
// without the output as an atom, strong-connex is the three together.
func TestRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		nv := 1 + rng.IntN(7)
		// Far numbers show that variables need not be dense.
		scale := 1 + rng.IntN(50)
		atoms := make([][]int, 1+rng.IntN(7))
		for i := range atoms {
			for range rng.IntN(5) {
				atoms[i] = append(atoms[i], scale*rng.IntN(nv))
			}
		}
		var out []int
		for v := range nv {
			if rng.IntN(2) == 0 {
				out = append(out, v*scale)
			}
		}
		a := Analyze(atoms, out)
		checkCores(t, atoms, out, a)
		c := a.Class
		acyclic := definitionAcyclic(atoms)
		used := slices.DeleteFunc(slices.Clone(out), func(v int) bool {
			return !slices.ContainsFunc(atoms, func(a []int) bool { return slices.Contains(a, v) })
		})
		connex := acyclic && definitionAcyclic(append(slices.Clone(atoms), used))
		if c.Acyclic != acyclic || c.FreeConnex != connex || c.StrongConnex != (connex && c.ExistsHierarchical && c.HeadCluster) {
			t.Fatalf("%v -> %v: got %v", atoms, out, c.Flags())
		}
		if c.QHierarchical && !c.StrongConnex || c.FullAcyclic() && !c.StrongConnex {
			t.Fatalf("%v -> %v: classes do not nest: %v", atoms, out, c.Flags())
		}
	}
}

// wide makes a ring of n atoms, each with 200 variables more.
func wide(n int) [][]int {
	atoms := make([][]int, n)
	for i := range atoms {
		atoms[i] = []int{1000 + i, 1000 + (i+1)%n}
		for j := range 200 {
			atoms[i] = append(atoms[i], 2000+200*i+j)
		}
	}
	return atoms
}

// wideOut makes all of wide output, but for the link of its last two atoms.
func wideOut(n int) (out []int) {
	for _, a := range wide(n) {
		for _, v := range a {
			if v != 1000+n-2 {
				out = append(out, v)
			}
		}
	}
	return out
}

// TestLarge shows that hundreds of atoms over more than 64 variables are
// decided in far less than exponential time.
func TestLarge(t *testing.T) {
	const m = 600
	path, star, ring := make([][]int, m), make([][]int, m), make([][]int, m)
	var all []int
	for i := range m {
		path[i] = []int{i, i + 1}
		star[i] = []int{0, i + 1}
		ring[i] = []int{i, (i + 1) % m}
		all = append(all, i)
	}
	all = append(all, m)
	start := time.Now()
	for _, tc := range []struct {
		atoms [][]int
		out   []int
		want  string
		core  int // atoms in the core
	}{
		{path, all, "full acyclic", 0},
		{path, []int{0, m}, "acyclic, not free-connex", m},
		{path, all[:m/2], "free-connex, not strong-connex", 2},
		{star, all, "full acyclic, q-hierarchical", 0},
		{star, all[1:], "acyclic, not free-connex", 2},
		{ring, all, "cyclic", m},
		{ring[:200:200], all, "full acyclic", 0},
		{append(slices.Clone(path), []int{m, m - 200}), all, "cyclic", 201},
		// Wide atoms: 60 in a ring, each with 200 variables of its own, and the
		// same without the last one, not free-connex far from the front.
		{wide(60), nil, "cyclic", 60},
		{wide(60)[:59], wideOut(60), "acyclic, not free-connex", 2},
	} {
		a := Analyze(tc.atoms, tc.out)
		got := 0
		if a.Core != nil {
			got = len(a.Core.Atoms)
		}
		if a.Class.String() != tc.want || got != tc.core {
			t.Errorf("got %v with a core of %d atoms, want %v with %d", a.Class, got, tc.want, tc.core)
		}
	}
	if d := time.Since(start); d > time.Minute {
		t.Errorf("took %v", d)
	}
}
