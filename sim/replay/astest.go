package replay

import (
	"cmp"
	"errors"
	"fmt"
	"go/format"
	"go/token"
	"io"
	"slices"
	"strings"
	"unicode"
)

// A TestFile describes the file that [Recording.AsTest] writes. The zero value is a test
// that fails if the replay diverges.
type TestFile struct {
	// Package is the name of the package of the file. Empty means "replayed_test".
	Package string

	// Name is the name of the test. Empty means one that is made from the first of Invariants: "TestBackOff".
	Name string

	// Invariants are the names of the invariants that must hold. None means that the agent must not diverge.
	Invariants []string
}

// AsTest writes a Go file with a test that replays the recording, which the file contains. The test
// requires no other files, and only exported packages. It returns an error for an invalid name, an
// unknown invariant, a recording that is damaged or larger than 1 MiB in JSON, and that of out.
func (r *Recording) AsTest(out io.Writer, file TestFile) error {
	file.Package = cmp.Or(file.Package, "replayed_test")
	if file.Name == "" {
		file.Name = testName(file.Invariants)
	}
	if err := checkInvariants(file.Invariants); err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	if !token.IsIdentifier(file.Package) || !token.IsIdentifier(file.Name) || !strings.HasPrefix(file.Name, "Test") {
		return fmt.Errorf("replay: package %q, test %q: invalid names", file.Package, file.Name)
	}
	if r == nil || len(r.frames) == 0 {
		return errors.New("replay: the recording is empty")
	}
	lines, size := []string{}, 0
	for _, f := range single(r.frames) {
		line, err := asJSON(f)
		if err != nil {
			return fmt.Errorf("replay: %w", err)
		}
		if size += len(line); size > 1<<20 {
			return errors.New("replay: the recording is larger than 1 MiB: shrink it")
		}
		lines = append(lines, line)
	}
	var b strings.Builder
	args := ""
	for _, name := range file.Invariants {
		args += fmt.Sprintf(", %q", name)
	}
	fmt.Fprintf(&b, "package %s\n\nimport (\n\t\"testing\"\n\n\t\"github.com/kubeparts/kubeparts/sim/replay\"\n)\n\n", file.Package)
	fmt.Fprintf(&b, "// %s replays %d frames of a recording. %s\nfunc %s(t *testing.T) {\n\treplay.Check(t, %sFrames%s)\n}\n\n",
		file.Name, len(lines), purpose(file.Invariants), file.Name, lower(file.Name), args)
	fmt.Fprintf(&b, "// Times (at) are in nanoseconds since the start of the recording.\nconst %sFrames = `\n%s\n`\n", lower(file.Name), strings.Join(lines, "\n"))
	text, err := format.Source([]byte(b.String()))
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	_, err = out.Write(text)
	return err
}

// purpose returns what a test requires, as a sentence.
func purpose(invariants []string) string {
	if len(invariants) == 0 {
		return "The agent must do what the recorded one did."
	}
	var out []string
	for _, inv := range Invariants() {
		if slices.Contains(invariants, inv.Name) {
			out = append(out, inv.Description)
		}
	}
	return "Required: " + strings.Join(out, "; ") + "."
}

// testName returns the name of a test for invariants.
func testName(invariants []string) string {
	if len(invariants) == 0 {
		return "TestReplay"
	}
	name := "Test"
	for part := range strings.SplitSeq(invariants[0], "-") {
		for i, c := range part {
			if i == 0 {
				c = unicode.ToUpper(c)
			}
			name += string(c)
		}
	}
	return name
}

// lower returns the name of a test with a small first letter.
func lower(name string) string { return "t" + name[1:] }
