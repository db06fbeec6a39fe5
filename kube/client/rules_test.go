package client_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each rule of what a node and an API server say to each other has a test that
// says its number, or else a reason here why it has none.
func TestEachRuleIsNamedByATest(t *testing.T) {
	rules := []struct {
		kind     string
		from, to int
	}{
		{"src", 33, 34},              // pods of the API
		{"st", 63, 80},               // statuses go to the API, and what stays there
		{"mir", 1, 6},                // mirror pods
		{"oc", 1, 8},                 // Secrets and ConfigMaps
		{"F", 43, 44},                // and what goes beyond it
		{"L", 33, 33}, {"L", 36, 37}, //
		{"pe", 1, 1}, {"pe", 12, 12}, // services
		{"rt", 20, 20}, {"inv", 7, 7}, //
		{"inv", 9, 9}, {"ps", 3, 3}, //
	}
	without := map[string]map[int]string{"st": {
		63: "an agent without an API server has another sink, or none: package status",
		64: "when a status is written is package status's to decide: at once, with a back-off of its own",
		69: "what was delivered, and when, is in status.Hooks",
		72: "pods are written in parallel by package status; TestAHundredPodsDrainInTime shows what comes of it",
		73: "package status",
		77: "a terminal phase is held back by package status, which sees the containers",
	}}
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	named := map[string]bool{}
	number := regexp.MustCompile(`\b(?:src|st|mir|oc|F|L|pe|rt|inv|ps)-\d+\b`)
	for _, file := range files {
		if file == "rules_test.go" {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, rule := range number.FindAllString(string(text), -1) {
			named[rule] = true
		}
	}
	for _, r := range rules {
		for n := r.from; n <= r.to; n++ {
			rule := fmt.Sprintf("%s-%d", r.kind, n)
			if why, ok := without[r.kind][n]; ok {
				assert.False(t, named[rule], "%s is named by a test: a reason that holds no longer: %s", rule, why)
				continue
			}
			assert.True(t, named[rule], "no test names %s", rule)
		}
	}
}
