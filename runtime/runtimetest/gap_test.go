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
		"known gap: not implemented yet",
		"failures: no event after the start of a pod",
		"105 of 105 requirements checked: 100 met, 0 violated, 3 known gaps, 2 not applicable",
		"known gap: WatchReportsChanges: not implemented yet",
		"--- FAIL: " + t.Name() + "/a_gap_that_is_none ",
		"the check passes, but is in Suite.Gaps (it used to be so): remove it from there",
		"101 met, 2 violated, 0 known gaps",
		"--- FAIL: " + t.Name() + "/a_gap_of_nothing ",
		`runtimetest: Suite.Gaps: no check "WatchReportsChange"`,
		"--- FAIL: " + t.Name() + "/a_gap_without_a_reason ",
		"runtimetest: Suite.Gaps: no reason for WatchReportsChanges",
		"--- FAIL: " + t.Name() + "/a_suite_without_containers ",
		"runtimetest: Suite.Containers.Long or Suite.Containers.Exit is not set",
	} {
		assert.Contains(t, out, want)
	}
}

func playGaps(t *testing.T) {
	deaf := func(t *testing.T) runtime.Runtime { return newBroken(t, lifeViolations["WatchReportsChanges"]) }
	with := func(gaps map[string]string) runtimetest.Suite {
		s := memorySuite()
		s.Gaps = gaps
		return s
	}
	t.Run("a gap that is one", func(t *testing.T) {
		runtimetest.TestRuntime(t, deaf, with(map[string]string{"WatchReportsChanges": "not implemented yet", "EachWatchReceivesEvents": "of course", "EventsFollowVisibleChanges": "of course"}))
	})
	t.Run("a gap that is none", func(t *testing.T) {
		runtimetest.TestRuntime(t, newFull, with(map[string]string{"WatchReportsChanges": "it used to be so", "KillWithZeroGracePeriodIsPrompt": "it used to be so"}))
	})
	t.Run("a gap of nothing", func(t *testing.T) {
		runtimetest.TestRuntime(t, newFull, with(map[string]string{"WatchReportsChange": "a slip of the pen"}))
	})
	t.Run("a gap without a reason", func(t *testing.T) {
		runtimetest.TestRuntime(t, newFull, with(map[string]string{"WatchReportsChanges": " "}))
	})
	t.Run("a suite without containers", func(t *testing.T) {
		runtimetest.TestRuntime(t, newFull, runtimetest.Suite{})
	})
}
