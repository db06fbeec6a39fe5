package main

import (
	"bytes"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/lab"
)

const ginkgoReport = `[{"SpecReports": [
	{"ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeText": "run [NodeConformance]", "LeafNodeType": "It", "State": "passed", "RunTime": 3000000000},
	{"ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeText": "stop [NodeConformance]", "LeafNodeType": "It", "State": "failed", "RunTime": 1000000000, "Failure": {"Message": "it does not stop\nin time"}},
	{"ContainerHierarchyTexts": ["[sig-node] Pods"], "LeafNodeText": "hang", "LeafNodeType": "It", "State": "timedout"},
	{"ContainerHierarchyTexts": ["[sig-node] Windows"], "LeafNodeText": "run", "LeafNodeType": "It", "State": "skipped", "Failure": {"Message": "only on Windows"}},
	{"ContainerHierarchyTexts": ["[sig-node] Clouds"], "LeafNodeText": "run", "LeafNodeType": "It", "State": "skipped"},
	{"ContainerHierarchyTexts": ["[sig-apps] Jobs"], "LeafNodeText": "run", "LeafNodeType": "It", "State": "skipped"},
	{"LeafNodeType": "SynchronizedBeforeSuite", "State": "passed"},
	{"LeafNodeType": "SynchronizedAfterSuite", "State": "panicked", "Failure": {"Message": "oh"}}
]}]`

func TestAReportIsParsed(t *testing.T) {
	results, err := parse([]byte(ginkgoReport), []exclusion{{"Clouds", "there is none"}})
	require.NoError(t, err)
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
	text := report{results: results, focus: "run", containerd: "2.4.2"}.markdown()
	assert.Contains(t, text, "| passed | 1 |\n| **failed** | **3** |\n| skipped by the test | 1 |\n| excluded | 1 |\n")
	assert.Contains(t, text, "| FAILED | 1s | [sig-node] Pods stop [NodeConformance]<br>it does not stop |\n")

	var out bytes.Buffer
	table(&out, results)
	assert.Regexp(t, `(?s)^passed +3s .*excluded.*there is none.*FAILED +1s .*it does not stop\n$`, out.String())

	_, err = parse([]byte("nothing"), nil)
	assert.Error(t, err)
}

func TestEachExclusionHasAReason(t *testing.T) {
	for _, e := range excluded() {
		assert.NotEmpty(t, e.why, e.text)
		assert.Regexp(t, "^"+patterns([]exclusion{e})[0]+"$", e.text)
	}
	for _, p := range patterns(excluded()) {
		_, err := regexp.Compile(p)
		assert.NoError(t, err)
	}
}

func TestFilesAreAddedWithTheirDirectories(t *testing.T) {
	img := lab.Image{Files: []lab.File{{Path: "usr/", Mode: 0o755}, {Path: "sh"}}}
	add(&img, lab.File{Path: "usr/lib/x/y"}, lab.File{Path: "usr/lib/z"}, lab.File{Path: "sh"}, lab.File{Path: "run/"})
	var paths []string
	for _, f := range img.Files {
		paths = append(paths, f.Path)
	}
	assert.Equal(t, []string{"usr/", "sh", "usr/lib/", "usr/lib/x/", "usr/lib/x/y", "usr/lib/z", "run/"}, paths)
}
