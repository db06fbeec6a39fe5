package kubeparts_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Each rule of statuses, of sources of pods and of images that are collected has a
// test that says its number, or a reason here why it has none. See
// TestEachRuleOfThePodEngineIsNamedByATest.
func TestEachRuleOfStatusesSourcesAndImagesIsNamedByATest(t *testing.T) {
	rules := []struct {
		kind     string
		from, to int
	}{
		{"st", 1, 80}, {"src", 1, 34}, {"ig", 1, 19},
		{"lq", 19, 20}, {"lq", 23, 26}, {"lq", 31, 31}, {"nq", 8, 9}, // ways of the kubelet's that are not copied
		{"L", 28, 32}, {"L", 34, 36}, {"L", 38, 45}, {"F", 28, 34},
		{"inv", 6, 10}, {"inv", 13, 13},
	}
	const differs = "status/doc.go says how it is otherwise: "
	without := map[string]string{
		"st-26": "the rules of restarts of containers cannot be turned off",
		"st-48": differs + "a pod that is being deleted is not written for that alone",
		"st-55": differs + "readiness comes with a report",
		"st-56": differs + "so does startup",
		"st-64": differs + "there is no tick; what is due is delivered, what failed after a back-off of its own",
	}

	named := rulesNamedByTests(t, []string{"st", "src", "ig", "lq", "nq", "L", "F", "inv"})
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
