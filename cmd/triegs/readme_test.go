package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// dialogue is a command line of the README, and what stands below it.
type dialogue struct{ command, output string }

// dialogues reads the indented blocks of a page that begin with a prompt.
func dialogues(page string) (out []dialogue) {
	open := false
	for line := range strings.Lines(page) {
		text, indented := strings.CutPrefix(line, "    ")
		command, prompt := strings.CutPrefix(text, "$ ")
		switch {
		case !indented:
			open = false
		case prompt:
			out, open = append(out, dialogue{command: strings.TrimSuffix(command, "\n")}), true
		case open:
			out[len(out)-1].output += text
		}
	}
	return out
}

// TestReadmeDialogues runs the command lines of the README: cat writes the file
// that it shows, triegs prints what stands below it.
func TestReadmeDialogues(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	t.Chdir(t.TempDir())
	for _, d := range dialogues(string(page)) {
		args := words(d.command)
		switch args[0] {
		case "cat":
			if err := os.WriteFile(args[1], []byte(d.output), 0o644); err != nil {
				t.Fatal(err)
			}
		case "triegs":
			ran++
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), args[1:], strings.NewReader(""), &stdout, &stderr)
			if code != 0 || stdout.String() != d.output {
				t.Errorf("%s: exit %d, %s\ngot:\n%s\nwant:\n%s", d.command, code, stderr.String(), stdout.String(), d.output)
			}
		default:
			t.Errorf("the command %s is not run", args[0])
		}
	}
	if ran == 0 {
		t.Error("the README runs nothing")
	}
}
