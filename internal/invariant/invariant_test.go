package invariant

import "testing"

// TestCheck pins what a broken invariant does in each kind of build.
func TestCheck(t *testing.T) {
	Check(true, "holds")
	defer func() {
		got := recover()
		if Enabled && got != "invariant broken: 2 of 3" {
			t.Fatalf("recovered %v, want the formatted text", got)
		}
		if !Enabled && got != nil {
			t.Fatalf("recovered %v from a build without checks", got)
		}
	}()
	Check(false, "%d of %d", 2, 3)
}

// TestFree pins that the seams of a release build cost nothing to the heap.
func TestFree(t *testing.T) {
	if n := testing.AllocsPerRun(100, Yield); n != 0 {
		t.Fatalf("Yield allocates %v times", n)
	}
}
