// Package turns measures in processes of their own and takes medians.
//
// A program that uses it starts itself again for each measurement, so that the
// heap of one is not collected on the time of another.
package turns

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
)

// Child starts this program again with the arguments and decodes the JSON that
// it prints into result.
func Child(result any, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, args...)
	cmd.Stderr = os.Stderr
	answer, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("measuring %v: %w", args, err)
	}
	if err := json.Unmarshal(answer, result); err != nil {
		return fmt.Errorf("what %v measured: %w", args, err)
	}
	return nil
}

// Median is the middle of the figures, the mean of the two in the middle if
// there are two, and 0 if there is none.
func Median(figures []float64) float64 {
	n := len(figures)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(figures))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
