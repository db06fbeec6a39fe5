package repo_test

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/ruletest"
)

// Each rule of how a pod is run has a test that says its number, in the name of
// a case or in a comment, or else a reason here why it has none. Of a span, as
// "rt-41 … rt-43", only the ends are said. A test that needs a real runtime does
// not count: where there is none, it shows nothing.
func TestEachRuleOfThePodEngineIsNamedByATest(t *testing.T) {
	rules := []ruletest.Span{
		{Kind: "rt", From: 1, To: 152},                               // the runtime's side
		{Kind: "img", From: 1, To: 17},                               // images
		{Kind: "al", From: 1, To: 21},                                // allocation and resize
		{Kind: "cm", From: 1, To: 46}, {Kind: "oom", From: 1, To: 3}, // cgroups, resources of pods and containers, kills
		{Kind: "pe", From: 1, To: 20},                                                                                                // environment, hosts, hostname, messages
		{Kind: "dn", From: 1, To: 9},                                                                                                 // DNS
		{Kind: "se", From: 1, To: 20},                                                                                                // security
		{Kind: "lq", From: 8, To: 8}, {Kind: "lq", From: 12, To: 18}, {Kind: "lq", From: 29, To: 29}, {Kind: "lq", From: 32, To: 34}, // ways of the kubelet's that are not copied
		{Kind: "L", From: 15, To: 19}, {Kind: "L", From: 46, To: 55}, {Kind: "L", From: 57, To: 57}, {Kind: "L", From: 59, To: 59}, // and what goes beyond it
	}
	named := rulesNamedByTests(t, []string{"rt", "img", "al", "cm", "oom", "pe", "dn", "se", "lq", "L"})
	ruletest.Check(t, named, nil, rules...)
}

// Each rule of how containers are probed has a test that says its number, or
// stands among the differences in prober/doc.go, or there is a reason here why it
// has neither.
func TestEachRuleOfTheProberIsNamedByATestOrADifference(t *testing.T) {
	doc, err := fs.ReadFile(files, "prober/doc.go")
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
	doc, err := fs.ReadFile(files, "pleg/doc.go")
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
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
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
		data := strings.Contains(path, "/testdata/") && (ext == ".yaml" || ext == ".txt")
		if !data && !strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "rules_test.go") || strings.Contains(d.Name(), "integration") {
			return nil
		}
		text, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		for _, rule := range ruletest.In(string(text)) {
			if strings.HasPrefix(rule, "st-") && strings.HasPrefix(path, "cm/") {
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
