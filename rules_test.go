package kubeparts_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each rule of how a pod is run has a test that says its number, in the name of
// a case or in a comment, or else a reason here why it has none. Of a span, as
// "rt-41 … rt-43", only the ends are said. A test that needs a real runtime does
// not count: where there is none, it shows nothing.
func TestEachRuleOfThePodEngineIsNamedByATest(t *testing.T) {
	type span struct {
		kind     string
		from, to int
	}
	rules := []span{
		{"rt", 1, 152},               // the runtime's side
		{"img", 1, 17},               // images
		{"al", 1, 21},                // allocation and resize
		{"cm", 1, 46}, {"oom", 1, 3}, // cgroups, resources of pods and containers, kills
		{"pe", 1, 20},                                                // environment, hosts, hostname, messages
		{"dn", 1, 9},                                                 // DNS
		{"se", 1, 20},                                                // security
		{"lq", 8, 8}, {"lq", 12, 18}, {"lq", 29, 29}, {"lq", 32, 34}, // ways of the kubelet's that are not copied
		{"L", 15, 19}, {"L", 46, 55}, {"L", 57, 57}, {"L", 59, 59}, // and what goes beyond it
	}
	without := map[string]string{
		"cm-46": "processes of the system are not moved into cgroups: systemd, or who starts them, does that",
	}

	named := rulesNamedByTests(t, []string{"rt", "img", "al", "cm", "oom", "pe", "dn", "se", "lq", "L"})
	for _, s := range rules {
		for n := s.from; n <= s.to; n++ {
			rule := fmt.Sprintf("%s-%d", s.kind, n)
			switch why, ok := without[rule]; {
			case ok && named[rule] != nil:
				assert.Fail(t, "a reason that holds no longer", "%s (%s) is named by %s", rule, why, named[rule])
			case !ok:
				assert.NotNil(t, named[rule], "no test names %s", rule)
			}
		}
	}
}

// Each rule of how containers are probed has a test that says its number, or
// stands among the differences in prober/doc.go, or there is a reason here why it
// has neither.
func TestEachRuleOfTheProberIsNamedByATestOrADifference(t *testing.T) {
	doc, err := os.ReadFile("prober/doc.go")
	require.NoError(t, err)
	_, differences, found := strings.Cut(string(doc), "# Differences from the kubelet")
	require.True(t, found)
	without := map[string]string{
		"F-07": "not there: under overload a probe is late, but one that times out has failed",
		"F-12": "not there: a handler for a type of the API can be replaced, but there are no other types",
		"F-13": "not there: each request has a connection of its own",
	}
	named := rulesNamedByTests(t, []string{"prober", "F"})
	for kind, last := range map[string]int{"prober": 77, "F": 13} {
		for n := 1; n <= last; n++ {
			rule := fmt.Sprintf("%s-%d", kind, n)
			if kind == "F" {
				rule = fmt.Sprintf("F-%02d", n)
			}
			has := named[rule] != nil || regexp.MustCompile(`\b`+rule+`\b`).MatchString(differences)
			switch why, ok := without[rule]; {
			case ok && has:
				assert.Fail(t, "a reason that holds no longer", "%s (%s) is named", rule, why)
			case !ok:
				assert.True(t, has, "%s is neither tested nor said to differ", rule)
			}
		}
	}
}

// Each rule of how changes are found has a test that says its number, or stands
// among the differences in pleg/doc.go.
func TestEachRuleOfThePlegIsNamedByATestOrADifference(t *testing.T) {
	doc, err := os.ReadFile("pleg/doc.go")
	require.NoError(t, err)
	_, differences, found := strings.Cut(string(doc), "# Differences from the kubelet")
	require.True(t, found)
	differ := func(kind string, n int) bool {
		for _, m := range regexp.MustCompile(`\b`+kind+`-(\d+)(?: … `+kind+`-(\d+))?\b`).FindAllStringSubmatch(differences, -1) {
			from, _ := strconv.Atoi(m[1])
			to := from
			if m[2] != "" {
				to, _ = strconv.Atoi(m[2])
			}
			if from <= n && n <= to {
				return true
			}
		}
		return false
	}
	named := rulesNamedByTests(t, []string{"pleg", "cache", "lq", "L"})
	for kind, last := range map[string]int{"pleg": 42, "cache": 10, "lq": 5, "L": 14} {
		for n := 1; n <= last; n++ {
			assert.True(t, named[fmt.Sprintf("%s-%d", kind, n)] != nil || differ(kind, n), "%s-%d is neither tested nor said to differ", kind, n)
		}
	}
}

// rulesNamedByTests returns, by the rule, the files of this module that name it:
// tests, and the scenarios and pods that they read.
func rulesNamedByTests(t *testing.T, kinds []string) map[string][]string {
	t.Helper()
	all, err := allNamed()
	require.NoError(t, err)
	named := make(map[string][]string)
	for rule, files := range all {
		if kind, _, _ := strings.Cut(rule, "-"); slices.Contains(kinds, kind) {
			named[rule] = files
		}
	}
	return named
}

// allNamed reads the module once, for all tests of this package.
var allNamed = sync.OnceValues(func() (map[string][]string, error) {
	named := make(map[string][]string)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != "." && strings.HasPrefix(d.Name(), ".") {
				return fs.SkipDir
			}
			return nil
		}
		ext := filepath.Ext(path)
		data := strings.Contains(filepath.ToSlash(path), "/testdata/") && (ext == ".yaml" || ext == ".txt")
		if !data && !strings.HasSuffix(path, "_test.go") || path == "rules_test.go" || path == "podrules_test.go" || path == "staterules_test.go" || strings.Contains(d.Name(), "integration") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, rule := range rulesIn(string(text)) {
			if strings.HasPrefix(rule, "st-") && strings.HasPrefix(filepath.ToSlash(path), "cm/") {
				continue // the rules of stats have the prefix of those of statuses
			}
			if !slices.Contains(named[rule], path) {
				named[rule] = append(named[rule], path)
			}
		}
		return nil
	})
	return named, err
})

// rulesIn returns what has the form of a rule's number: a word, a hyphen, digits. A
// regular expression takes a minute for all files under the race detector.
func rulesIn(text string) (rules []string) {
	const digits = "0123456789"
	const letters = digits + "_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	for at, c := range []byte(text) {
		if c != '-' {
			continue
		}
		before, after := text[:at], text[at+1:]
		from := at
		for from > 0 && strings.IndexByte(letters, before[from-1]) >= 0 {
			from--
		}
		number := after[:len(after)-len(strings.TrimLeft(after, digits))]
		whole := len(number) == len(after) || strings.IndexByte(letters, after[len(number)]) < 0
		if from < at && number != "" && whole {
			rules = append(rules, before[from:]+"-"+number)
		}
	}
	return rules
}
