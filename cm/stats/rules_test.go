package stats_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each rule of section 10 with the tests that name it, or why none does. The numbers
// of statuses' rules are called the same, so that a number alone says nothing.
func TestEachRuleOfStatsHasATest(t *testing.T) {
	rules := map[string]string{
		"st-1":  "TestTheNodeItself, TestWhatTheRuntimeSaysOfAPod",
		"st-2":  "TestTheNodeItself",
		"st-3":  "TestCPUAndMemoryAlone",
		"st-4":  "TestWhatIsFresh, TestFreshDisksAndPods",
		"st-5":  "TestTheNodeItself, TestCgroupsFillInWhatTheRuntimeDoesNotSay",
		"st-6":  "TestWhatIsFresh",
		"st-7":  "TestTheNewestOfOneNameCounts",
		"st-8":  "TestTheNodeItself",
		"st-9":  "TestTheNodeItself",
		"st-10": "TestEphemeralStorage",
		"st-11": "TestTheNodeItself",
		"st-12": "TestWhatTheRuntimeSaysOfAPod",
		"st-13": "TestWhatTheRuntimeSaysOfAPod, TestCgroupsFillInWhatTheRuntimeDoesNotSay",
		"st-14": "TestTheNodeItself, TestCgroupsFillInWhatTheRuntimeDoesNotSay, TestCgroupsFillInFieldByField",
	}
	const served = "of who serves it: "
	without := map[string]string{
		"st-15": served + "kube/kubelet answers any method",
		"st-16": served + "kube/server is to make /metrics/resource of a Summary",
		"st-17": served + "kube/server is to, with /metrics/cadvisor",
		"st-18": served + "kube/server is to, with /metrics/slis",
		"st-19": "cadvisor is not here: nothing is sampled that nobody asks for (F-70)",
	}
	var text []byte
	for _, file := range []string{"stats_test.go", "fresh_test.go"} {
		part, err := os.ReadFile(file)
		require.NoError(t, err)
		text = append(text, part...)
	}
	tests := map[string]string{}
	for _, of := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatchIndex(string(text), -1) {
		name, body := string(text[of[2]:of[3]]), string(text[of[0]:])
		if end := strings.Index(body, "\n}\n"); end >= 0 {
			body = body[:end]
		}
		tests[name] = body
	}
	for n := 1; n <= 19; n++ {
		rule := fmt.Sprint("st-", n)
		if without[rule] != "" {
			assert.Empty(t, rules[rule])
			continue
		}
		assert.NotEmpty(t, rules[rule], "no test names %s", rule)
		for name := range strings.SplitSeq(rules[rule], ", ") {
			assert.Regexp(t, rule+`\b`, tests[name], "%s does not name %s", name, rule)
		}
	}
}
