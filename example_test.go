package triegs_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/triegs/triegs"
)

// A store in memory, a registered query, a batch of edges and its answers. Two
// equal edges count twice.
func Example() {
	if err := liked(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output: "tweet1" "tweet2" "Mia" 2
}

func liked(ctx context.Context) error {
	db, err := triegs.Open("", nil) // A directory would make it durable.
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.Register(ctx, "liked", `liked(x, y, w) :- hasReply(x, y), likedBy(y, w).`); err != nil {
		return err
	}
	s := triegs.String
	_, err = db.Append(ctx, triegs.Batch{Events: []triegs.Event{
		triegs.Edge("hasReply", s("tweet1"), s("tweet2")),
		triegs.Edge("hasReply", s("tweet1"), s("tweet2")),
		triegs.Edge("likedBy", s("tweet2"), s("Mia")),
	}})
	if err != nil {
		return err
	}
	snap, err := db.Snapshot()
	if err != nil {
		return err
	}
	defer snap.Close()
	for row, err := range snap.Answers("liked") {
		if err != nil {
			return err
		}
		fmt.Println(row.Term(0), row.Term(1), row.Term(2), row.Multiplicity())
	}
	return nil
}

// TestReadmeExample holds the program of the README against the example above,
// line by line.
func TestReadmeExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "```go\n")
	program, _, ok := strings.Cut(rest, "```")
	if !ok || program == "" {
		t.Fatal("the README has no program")
	}
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	indented := "\t" + strings.ReplaceAll(strings.TrimSuffix(program, "\n"), "\n", "\n\t")
	if !strings.Contains(string(source), indented) {
		t.Errorf("the example differs from the README's program:\n%s", program)
	}
}
