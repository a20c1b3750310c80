package triegs

import (
	"reflect"
	"testing"
)

func TestEdge(t *testing.T) {
	want := Event{Op: Insert, Relation: "knows", Tuple: []Term{String("a"), Int(7)}}
	if got := Edge("knows", String("a"), Int(7)); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestZeroOpInserts(t *testing.T) {
	var e Event
	if e.Op != Insert || Insert.String() != "insert" || Delete.String() != "delete" {
		t.Errorf("ops: %v %v %v", e.Op, Insert, Delete)
	}
}
