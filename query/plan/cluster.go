package plan

import (
	"slices"

	"github.com/triegs/triegs/query"
	"github.com/triegs/triegs/query/hypergraph"
)

// The clusters of Wang and Hu (appendix B.2): aliases that share a variable which
// is not output belong together. In an acyclic query that is free-connex one alias
// of each cluster holds all of its output variables: take a join tree of the
// cluster with these as its root; what hangs below the root in several branches
// would share output variables only, so there is one branch, and its top has
// whatever the root has. So each cluster can be summed to a relation over them, and
// what remains is a full query, which is acyclic again.

// extend finds the variables to be treated as output, so that the query is
// free-connex.
func (p *Plan) extend() {
	if !p.Class.FreeConnex {
		p.Extra = vars(hypergraph.Extend(p.schemas(), ints(p.Query.Head)))
	}
}

// schemas are the kept variables of the aliases.
func (p *Plan) schemas() [][]int {
	atoms := make([][]int, len(p.Aliases))
	for i := range p.Aliases {
		atoms[i] = ints(p.Aliases[i].Vars)
	}
	return atoms
}

// outputs tells for each variable whether it is output or treated so.
func (p *Plan) outputs() []bool {
	out := make([]bool, len(p.Query.Vars))
	for _, v := range p.Query.Head {
		out[v] = true
	}
	for _, v := range p.Extra {
		out[v] = true
	}
	return out
}

// findClusters returns the clusters, ordered by their first aliases, without trees.
func (p *Plan) findClusters() []Cluster {
	out := p.outputs()
	with := make([][]int, len(out)) // by variable that is not output: the aliases
	for a := range p.Aliases {
		for _, v := range p.Aliases[a].Vars {
			if !out[v] {
				with[v] = append(with[v], a)
			}
		}
	}
	var clusters []Cluster
	reached := make([]bool, len(p.Aliases))
	for a := range p.Aliases {
		if reached[a] {
			continue
		}
		reached[a] = true
		found := []int{a}
		for i := 0; i < len(found); i++ {
			for _, v := range p.Aliases[found[i]].Vars {
				for _, b := range with[v] {
					if !reached[b] {
						reached[b] = true
						found = append(found, b)
					}
				}
				with[v] = nil
			}
		}
		if len(found) > 1 {
			clusters = append(clusters, p.newCluster(found, out))
		}
	}
	return clusters
}

func (p *Plan) newCluster(aliases []int, out []bool) Cluster {
	slices.Sort(aliases)
	c := Cluster{Aliases: aliases}
	for _, a := range aliases {
		for _, v := range p.Aliases[a].Vars {
			if out[v] {
				c.Vars = append(c.Vars, v)
			}
		}
	}
	slices.Sort(c.Vars)
	c.Vars = slices.Compact(c.Vars)
	return c
}

// choose sets the trees: that of each cluster, then that of the full query over
// them.
func (p *Plan) choose() {
	p.Clusters = p.findClusters()
	for i := range p.Clusters {
		c := &p.Clusters[i]
		t := p.inside(c).choose()
		c.Nodes, c.NonStrong, c.Score = t.nodes, t.loose, t.score
	}
	t := p.top().choose()
	p.Nodes, p.Score = t.nodes, t.score
}

// holder returns the first alias whose atom holds v, and the first column of v in
// it; -1 when there is none.
func (p *Plan) holder(v query.Var) (alias, col int) {
	for i := range p.Query.Atoms {
		for col, arg := range p.Query.Atoms[i].Args {
			if arg.Var == v {
				return i, col
			}
		}
	}
	return -1, -1
}
