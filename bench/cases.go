package bench

import (
	"fmt"
	"slices"
)

// Case is one measurement of one contender. Cases of one subject and name are
// rows of one table, of which the first that has a figure is the base.
type Case struct {
	Subject, Name, Contender string
	measure                  func(dir string) ([]Figure, error)
}

// Measure runs the case in this process. dir is an existing directory for the
// cases of one name, in their order, in one round; what they leave there is the
// caller's to remove.
func (c *Case) Measure(dir string) ([]Figure, error) {
	f, err := c.measure(dir)
	if err != nil {
		return nil, fmt.Errorf("%s, %s, %s: %w", c.Subject, c.Name, c.Contender, err)
	}
	return f, nil
}

// Subjects lists what there are cases of.
func Subjects() []string {
	return []string{"structures", "answers", "delay", "log", "durable", "windows", "queries", "writes", "followers"}
}

// Cases lists the cases of a subject at the given size: 1 is full, less is for
// a first look.
func Cases(subject string, size float64) ([]*Case, error) {
	scaled := func(n int) int { return max(1000, int(float64(n)*size)) }
	switch subject {
	case "structures":
		return structureCases(scaled(1_000_000)), nil
	case "answers":
		return answerCases(scaled(200_000)), nil
	case "delay":
		return delayCases(scaled(1_000_000)), nil
	case "log":
		return logCases(scaled(400_000)), nil
	case "durable":
		return durableCases(scaled(5_000_000)), nil
	case "windows":
		return windowCases(scaled(1_000_000)), nil
	case "writes":
		return hopCases(), nil
	case "followers":
		return slices.Concat(followCases(scaled(200_000)), apartCases(scaled(100_000))), nil
	case "queries":
		return queryCases(scaled(200_000)), nil
	}
	return nil, fmt.Errorf("no subject %q; there are %v", subject, Subjects())
}

func structureCases(keys int) (cases []*Case) {
	for _, columns := range []int{1, 2} {
		for _, epoch := range []int{2, 100, 2000} {
			for _, s := range []string{"slice", "map", "trie", "btree", "iradix"} {
				cases = append(cases, &Case{
					"structures", fmt.Sprintf("keys of %d columns, epochs of %d writes", columns, epoch), s,
					func(string) ([]Figure, error) {
						return MeasureStructure(StructureRun{Structure: s, Columns: columns, Keys: keys, Epoch: epoch})
					},
				})
			}
		}
	}
	return cases
}

func answerCases(edges int) (cases []*Case) {
	for _, w := range workloads {
		for _, reader := range []string{readSlices, readViews, readRows, readTerms} {
			cases = append(cases, &Case{"answers", w.Name, reader, func(string) ([]Figure, error) {
				return measureAnswers(w, edges, reader)
			}})
		}
	}
	return cases
}

func delayCases(most int) (cases []*Case) {
	for _, w := range workloads {
		for edges := 1000; edges <= most; edges *= 10 {
			cases = append(cases, &Case{"delay", w.Name, fmt.Sprintf("%d edges", edges), func(string) ([]Figure, error) {
				return measureDelay(w, edges)
			}})
		}
	}
	return cases
}

func logCases(edges int) (cases []*Case) {
	w := workloads[0]
	add := func(name, contender string, measure func() ([]Figure, error)) {
		cases = append(cases, &Case{"log", name, contender, func(string) ([]Figure, error) { return measure() }})
	}
	thousands := "epochs of 1,000 edges, one appender"
	add(thousands, "memory", func() ([]Figure, error) { return measureAppends(w, false, edges, 1000) })
	add(thousands, "logged", func() ([]Figure, error) { return measureAppends(w, true, edges, 1000) })
	add(thousands, "sync alone", measureSync)
	many := "epochs of 1 edge, 64 appenders"
	add(many, "memory", func() ([]Figure, error) { return measureAppenders(w, false, 64, edges/1000) })
	add(many, "logged", func() ([]Figure, error) { return measureAppenders(w, true, 64, edges/1000) })
	return cases
}
