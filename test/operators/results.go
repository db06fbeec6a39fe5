package operators

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/test/internal/ginkgo"
)

// results are the results of the tests of a package with one side.
type results struct {
	specs  map[string]string // by name: passed, failed or skipped
	took   time.Duration
	memory int64 // maximum anonymous memory of the API server and etcd, in bytes; 0 if unknown
}

func (r *results) count(state string) int {
	n := 0
	for _, s := range r.specs {
		if s == state {
			n++
		}
	}
	return n
}

func (r *results) passed() int { return r.count("passed") }

func (r *results) ran() int { return r.count("passed") + r.count("failed") }

// testLine matches the start and the result of a test in the output of go test -v.
var testLine = regexp.MustCompile(`^\s*(=== RUN  |--- (?:PASS|FAIL|SKIP):) (\S+)`)

// addTests adds the tests in an output. A test that runs a suite of ginkgo, and one with
// subtests, is represented by these.
func (r *results) addTests(output string) {
	current := ""
	parents := map[string]bool{}
	found := map[string]string{}
	for line := range strings.Lines(output) {
		if strings.HasPrefix(line, "Running Suite:") {
			parents[current] = true
		}
		m := testLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		name := m[2]
		if i := strings.LastIndexByte(name, '/'); i > 0 {
			parents[name[:i]] = true
		}
		switch m[1] {
		case "=== RUN  ":
			current = name
			found[name] = "failed" // unless a result follows
		case "--- PASS:":
			found[name] = "passed"
		case "--- SKIP:":
			found[name] = "skipped"
		}
	}
	for name, state := range found {
		if !parents[name] {
			r.specs[name] = state
		}
	}
}

// addSpecs adds the specs of a report. Specs with one name are numbered. It returns an error if the suite has not
// started: its specs are then skipped, which is not a result.
func (r *results) addSpecs(specs []ginkgo.Spec) error {
	for _, s := range specs {
		if strings.HasSuffix(s.Node, "BeforeSuite") && s.State != "passed" && s.State != "skipped" {
			return fmt.Errorf("%s %s: %s", s.Node, s.State, s.Why)
		}
		if s.Node != "It" {
			continue
		}
		name := s.Name
		for n := 2; r.specs[name] != ""; n++ {
			name = fmt.Sprintf("%s (%d)", s.Name, n)
		}
		switch s.State {
		case "passed", "skipped":
			r.specs[name] = s.State
		case "pending":
			r.specs[name] = "skipped"
		default: // panicked, timedout, interrupted, ...
			r.specs[name] = "failed"
		}
	}
	return nil
}
