package script

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Run runs each file that matches pattern in a subtest named after it, which fails if the
// results differ from the expectations. With update, it rewrites the files instead.
//
// play returns the result of [Script.Play], or fails t.
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
				t.Fatalf("%s: play returned nil", want.file)
			case update:
				if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := want.Diff(got); diff != "" {
				t.Errorf("the results differ from the expectations (-update rewrites them):\n%s", diff)
			}
		})
	}
}

// Diff returns the differences between the expectations of s and the results in got, or ""
// if there are none.
func (s *Script) Diff(got *Script) string {
	var b strings.Builder
	after := got.Commands()
	for i, c := range s.Commands() {
		if i >= len(after) || slices.Equal(c.Want, after[i].Want) {
			continue
		}
		fmt.Fprintf(&b, "%s:%d: %s\n", c.file, c.line, strings.Join(c.Words, " "))
		same := 0
		for same < len(c.Want) && same < len(after[i].Want) && c.Want[same] == after[i].Want[same] {
			fmt.Fprintf(&b, "\t  > %s\n", c.Want[same])
			same++
		}
		for _, l := range c.Want[same:] {
			fmt.Fprintf(&b, "\t- > %s\n", l)
		}
		for _, l := range after[i].Want[same:] {
			fmt.Fprintf(&b, "\t+ > %s\n", l)
		}
	}
	if b.Len() == 0 && s.String() != got.String() {
		// Expectations are below a comment, or end in blanks.
		return fmt.Sprintf("%s: the layout differs from that of -update\n", s.file)
	}
	return b.String()
}
