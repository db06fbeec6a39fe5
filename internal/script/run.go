package script

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Run plays each file that matches pattern in a subtest named after it, and
// fails it where something else happens than is expected. With update, it
// rewrites the files instead.
//
// play returns what [Script.Play] does; if it cannot, it fails t.
func Run(t *testing.T, pattern string, update bool, play func(t *testing.T, s *Script) *Script) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("script: no file matches %s (%v)", pattern, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), filepath.Ext(file)), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want, err := Parse(filepath.ToSlash(file), string(text))
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, want)
			switch {
			case got == nil:
				t.Fatalf("%s: it was not played", want.file)
			case update:
				if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := want.Diff(got); diff != "" {
				t.Errorf("something else happened than the script expects (-update rewrites it):\n%s", diff)
			}
		})
	}
}

// Diff tells where got, which s was played to, differs from what s expects; empty
// if it does not.
func (s *Script) Diff(got *Script) string {
	var b strings.Builder
	after := got.Commands()
	for i, c := range s.Commands() {
		if i >= len(after) || slices.Equal(c.Expected, after[i].Expected) {
			continue
		}
		fmt.Fprintf(&b, "%s:%d: %s\n", c.file, c.line, strings.Join(c.Words, " "))
		same := 0
		for same < len(c.Expected) && same < len(after[i].Expected) && c.Expected[same] == after[i].Expected[same] {
			fmt.Fprintf(&b, "\t  > %s\n", c.Expected[same])
			same++
		}
		for _, l := range c.Expected[same:] {
			fmt.Fprintf(&b, "\t- > %s\n", l)
		}
		for _, l := range after[i].Expected[same:] {
			fmt.Fprintf(&b, "\t+ > %s\n", l)
		}
	}
	if b.Len() == 0 && s.String() != got.String() {
		// Expectations below a comment, or with blanks at their ends.
		return fmt.Sprintf("%s: it is not laid out as -update would have it\n", s.file)
	}
	return b.String()
}
