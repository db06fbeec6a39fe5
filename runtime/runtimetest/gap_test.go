package runtimetest_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// Gaps are checked in a process of their own, because some of them fail.
func TestGapsAreVerified(t *testing.T) {
	const child = "RUNTIMETEST_GAPS"
	if os.Getenv(child) != "" {
		playGaps(t)
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), child+"=1")
	raw, err := cmd.CombinedOutput()
	out := string(raw)
	assert.Error(t, err)
	for _, want := range []string{
		"--- PASS: " + t.Name() + "/a_gap_that_is_one ",
		"a known gap: not implemented yet",
		"seen: no hint after the start of a pod",
		"102 of 102 promises checked: 99 kept, 0 broken, 3 known gaps, 0 not applicable",
		"known gap: WatchHints: not implemented yet",
		"--- FAIL: " + t.Name() + "/a_gap_that_is_none ",
		"Suite.Gaps says that the promise is not kept (it used to be so), but it is: take it out",
		"100 kept, 2 broken, 0 known gaps",
		"--- FAIL: " + t.Name() + "/a_gap_of_nothing ",
		`runtimetest: Suite.Gaps: no check "WatchHint"`,
		"--- FAIL: " + t.Name() + "/a_gap_without_a_reason ",
		"runtimetest: Suite.Gaps: no reason for WatchHints",
		"--- FAIL: " + t.Name() + "/a_suite_without_containers ",
		"runtimetest: Suite.Containers.Long or Suite.Containers.Exit is not set",
	} {
		assert.Contains(t, out, want)
	}
}

func playGaps(t *testing.T) {
	deaf := func(t *testing.T) runtime.Runtime { return newBroken(t, lifeViolations["WatchHints"]) }
	with := func(gaps map[string]string) runtimetest.Suite {
		s := memorySuite()
		s.Gaps = gaps
		return s
	}
	t.Run("a gap that is one", func(t *testing.T) {
		runtimetest.TestRuntime(t, deaf, with(map[string]string{"WatchHints": "not implemented yet", "WatchersAreMany": "of course", "HintsComeOnceSeen": "of course"}))
	})
	t.Run("a gap that is none", func(t *testing.T) {
		runtimetest.TestRuntime(t, newFull, with(map[string]string{"WatchHints": "it used to be so", "KillAtOnce": "it used to be so"}))
	})
	t.Run("a gap of nothing", func(t *testing.T) {
		runtimetest.TestRuntime(t, newFull, with(map[string]string{"WatchHint": "a slip of the pen"}))
	})
	t.Run("a gap without a reason", func(t *testing.T) {
		runtimetest.TestRuntime(t, newFull, with(map[string]string{"WatchHints": " "}))
	})
	t.Run("a suite without containers", func(t *testing.T) {
		runtimetest.TestRuntime(t, newFull, runtimetest.Suite{})
	})
}
