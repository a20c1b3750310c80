package plan

import (
	"fmt"
	"strings"
)

// DOT draws the trees in the language of Graphviz: the tree of the query, and each
// cluster in a frame of its own, joined to the node that stands for it by a dotted
// line. Aliases are boxes, generalized nodes ellipses, clusters have double lines.
// Edges are labelled with their keys; what crosses an edge as a sum is bold, and
// dashed where it may change many tuples above. Of a query that is not evaluated
// there is a graph without nodes.
func (x *Explanation) DOT() string {
	d := &drawing{clusters: make(map[string]int)}
	for i, c := range x.Clusters {
		d.clusters[c.Name] = i
	}
	name := x.Name
	if name == "" {
		name = "query"
	}
	d.printf("digraph %s {\n", quoteDOT(name))
	d.printf("\tlabel=%s;\n", quoteDOT(x.Class))
	d.nodes("\t", "n", x.Nodes)
	for i, c := range x.Clusters {
		d.printf("\tsubgraph cluster_%d {\n\t\tlabel=%s;\n", i, quoteDOT("sums for "+c.Name))
		d.nodes("\t\t", fmt.Sprintf("c%d_", i), c.Nodes)
		d.printf("\t}\n")
	}
	for i, n := range x.Nodes {
		if c, ok := d.clusters[n.Name]; ok {
			root := &x.Clusters[c].Nodes[0]
			d.printf("\tn%d -> c%d_0 [label=%s, style=dotted, color=%s];\n", i, c, quoteDOT(strings.Join(root.Key, ", ")), edgeColor(root.Edge))
		}
	}
	d.printf("}\n")
	return d.String()
}

// drawing is a graph under way.
type drawing struct {
	strings.Builder
	clusters map[string]int // by name
}

func (d *drawing) printf(format string, args ...any) { fmt.Fprintf(d, format, args...) }

// nodes writes the nodes of one tree with its edges; the prefix tells it from
// others.
func (d *drawing) nodes(indent, prefix string, nodes []ExplainedNode) {
	for i, n := range nodes {
		shape := "box"
		if _, ok := d.clusters[n.Name]; ok {
			shape = "box, peripheries=2"
		} else if strings.HasPrefix(n.Name, "[") {
			shape = "ellipse"
		}
		label := n.Name
		if n.Live != nil {
			label += fmt.Sprintf("\n%d tuples\n%.3g writes, %.3g ns", n.Live.Tuples, n.Live.Writes, n.Live.Nanoseconds)
		}
		d.printf("%s%s%d [label=%s, shape=%s];\n", indent, prefix, i, quoteDOT(label), shape)
	}
	for i, n := range nodes {
		if n.Parent < 0 {
			continue
		}
		style := ""
		switch n.Edge {
		case EdgeStrong:
			style = ", style=bold"
		case EdgeLoose:
			style = ", style=\"bold,dashed\""
		}
		d.printf("%s%s%d -> %s%d [label=%s%s];\n", indent, prefix, n.Parent, prefix, i, quoteDOT(strings.Join(n.Key, ", ")), style)
	}
}

// edgeColor marks the root of a cluster of which one tuple may change many.
func edgeColor(edge string) string {
	if edge == EdgeLoose {
		return "red"
	}
	return "black"
}

// quoteDOT writes a string of DOT, in which only quotes, backslashes and line ends
// are special.
func quoteDOT(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}
