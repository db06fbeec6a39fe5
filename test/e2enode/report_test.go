package e2enode

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/test/internal/reasons"
)

func TestLabels(t *testing.T) {
	assert.Equal(t, []string{"Serial", "Feature:X", "NodeConformance"}, labels("[sig-node] A [Serial] b [Feature:X] [Serial] [NodeConformance]"))
	assert.Equal(t, []string{"none"}, labels("[sig-node] A"))
}

func TestTheReportComparesWhatWasRunWithBoth(t *testing.T) {
	all := results{}
	add := func(name string, k, a result) {
		k.name, a.name = name, name
		all.merge(kubelet, []result{k})
		all.merge(agent, []result{a})
	}
	pass, fail := result{is: passed}, result{is: failed, why: "a|b"}
	add("same [NodeConformance]", pass, pass)
	add("worse [NodeConformance]", pass, result{is: failed, why: "oh", again: true})
	add("explained [NodeConformance] [Serial]", pass, fail)
	add("agent skips", pass, result{is: skipped, why: "not supported"})
	add("better", fail, pass)
	add("neither", fail, fail)
	add("both skip", result{is: skipped}, result{is: skipped})
	add("kubelet only", pass, result{is: notRun})
	add("swap [Serial]", result{is: notRun}, result{is: notRun})
	r := newReport(history{"Monday", all}, []reasons.Reason{{Text: "swap", Why: "there is no swap"}}, []reasons.Reason{{Text: "explained", Why: "it is better"}, {Text: "agent skips", Why: ""}})

	assert.Equal(t, tally{tests: 9, notMeasurable: 1, run: 6, kubelet: 4, agent: 2, both: 1}, r.total)
	assert.Equal(t, tally{tests: 3, run: 3, kubelet: 3, agent: 1, both: 1}, r.byLabel["NodeConformance"])
	assert.Equal(t, tally{tests: 2, notMeasurable: 1, run: 1, kubelet: 1}, r.byLabel["Serial"])
	assert.Equal(t, []string{"explained [NodeConformance] [Serial]"}, names(r.explained))
	assert.Equal(t, []string{"agent skips", "worse [NodeConformance]"}, names(r.unexplained), "a reason must not be empty")
	assert.Equal(t, []string{"better"}, names(r.ours))
	assert.Equal(t, []string{"neither"}, names(r.neither))
	assert.Equal(t, []excluded{{"there is no swap", 1}}, r.unexplored)

	text := r.markdown()
	assert.Contains(t, text, "| NodeConformance | 3 | 0 | 3 | 3 | 1 |\n")
	assert.Contains(t, text, "| **all tests** | 9 | 1 | 6 | 4 | 2 |\n")
	assert.Contains(t, text, "| **passed by the kubelet and not by the agent** | **3** |\n")
	assert.Contains(t, text, "passes | 1 of 3 (33.3 %) |\n| of all others | 0 of 1 (0.0 %) |\n")
	assert.Contains(t, text, "| passed | FAILED | explained [NodeConformance] [Serial]<br>it is better<br>agent: a\\|b |\n")
	assert.Contains(t, text, "| passed | FAILED\\* | worse [NodeConformance]<br>agent: oh |\n")
	assert.Contains(t, text, "| 1 | there is no swap |\n")
	assert.Contains(t, r.summary(), "unexplained: worse [NodeConformance]\n    FAILED: oh\n")
	assert.True(t, strings.HasSuffix(r.summary(), "6 tests run with both: the kubelet passes 4, the agent 2; 1 explained differences, 2 unexplained\n"))
}

func names(all []difference) []string {
	var out []string
	for _, d := range all {
		out = append(out, d.name)
	}
	return out
}

func TestReasonsThatApplyToNothingAreReported(t *testing.T) {
	all := results{}
	all.merge(kubelet, []result{{name: "same", is: passed}, {name: "differs", is: passed}})
	all.merge(agent, []result{{name: "same", is: passed}, {name: "differs", is: failed}})
	notMeasurable := []reasons.Reason{{Text: "renamed", Why: "there is no swap"}, {Text: "differs", Why: "slow"}}
	explained := []reasons.Reason{{Text: "differs", Why: "it is better"}, {Text: "same", Why: "it was worse"}}
	r := newReport(history{"Monday", all}, nil, explained)
	assert.Equal(t, []string{"unused: no test has renamed in its name", "unused: same is no difference any more"},
		unusedReasons([]string{"same", "differs"}, r, notMeasurable, explained))
}

func TestEachReasonOfTheListsIsStated(t *testing.T) {
	lists := slices.Concat(differences(), notMeasurable())
	assert.NotEmpty(t, lists)
	for _, r := range lists {
		assert.NotEmpty(t, r.Why, r.Text)
	}
}
