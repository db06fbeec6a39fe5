package conformance

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/test/internal/ginkgo"
	"github.com/kubeparts/kubeparts/test/internal/reasons"
)

const ginkgoReport = `[{"SpecReports": [
	{"ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeText": "run [NodeConformance]", "LeafNodeType": "It", "State": "passed", "RunTime": 3000000000},
	{"ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeText": "stop [NodeConformance]", "LeafNodeType": "It", "State": "failed", "RunTime": 1000000000, "Failure": {"Message": "it does not stop\nin time"}},
	{"ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeText": "hang", "LeafNodeType": "It", "State": "timedout"},
	{"ContainerHierarchyTexts": ["[sig-node] Windows"], "LeafNodeText": "run", "LeafNodeType": "It", "State": "skipped", "Failure": {"Message": "only on Windows"}},
	{"ContainerHierarchyTexts": ["[sig-node] Clouds"], "LeafNodeText": "run", "LeafNodeType": "It", "State": "skipped"},
	{"ContainerHierarchyTexts": ["[sig-cli] Clouds"], "LeafNodeText": "list", "LeafNodeType": "It", "State": "skipped"},
	{"ContainerHierarchyTexts": ["[sig-node] Clouds"], "LeafNodeText": "stop", "LeafNodeType": "It", "State": "skipped"},
	{"ContainerHierarchyTexts": ["[sig-apps] Jobs"], "LeafNodeText": "run", "LeafNodeType": "It", "State": "skipped"},
	{"LeafNodeType": "SynchronizedBeforeSuite", "State": "passed"},
	{"LeafNodeType": "SynchronizedAfterSuite", "State": "panicked", "Failure": {"Message": "oh"}}
]}]`

func TestAReportIsParsed(t *testing.T) {
	specs, err := ginkgo.Parse([]byte(ginkgoReport))
	require.NoError(t, err)
	selected, err := selection(`\[sig-node\]`, "Clouds stop")
	require.NoError(t, err)
	results := evaluate(specs, selected, []reasons.Reason{{Text: "Clouds", Why: "there is none"}})
	want := []result{
		{"[sig-node] Pods run [NodeConformance]", passed, 3 * time.Second, ""},
		{"[sig-node] Pods stop [NodeConformance]", failed, time.Second, "it does not stop"},
		{"[sig-node] Pods hang", failed, 0, "timedout"},
		{"[sig-node] Windows run", skipped, 0, "only on Windows"},
		{"[sig-node] Clouds run", excludedState, 0, "there is none"},
		{"[SynchronizedAfterSuite] ", failed, 0, "oh"},
	}
	assert.Equal(t, want, results)
	assert.Equal(t, map[state]int{passed: 1, failed: 3, skipped: 1, excludedState: 1}, count(results))
	text := report{kind: kinds["node"], results: results, focus: "run", containerd: "2.4.2"}.markdown()
	assert.Contains(t, text, "| passed | 1 |\n| **failed** | **3** |\n| skipped by the test | 1 |\n| excluded | 1 |\n")
	assert.Contains(t, text, "| FAILED | 1s | [sig-node] Pods stop [NodeConformance]<br>it does not stop |\n")

	var out bytes.Buffer
	table(&out, results)
	assert.Regexp(t, `(?s)^passed +3s .*excluded.*there is none.*FAILED +1s .*it does not stop\n$`, out.String())
}

func TestEachExclusionHasAReason(t *testing.T) {
	for name, k := range kinds {
		assert.NotEmpty(t, k.reasons(), name)
		for _, e := range k.reasons() {
			assert.NotEmpty(t, e.Why, e.Text)
		}
	}
}
