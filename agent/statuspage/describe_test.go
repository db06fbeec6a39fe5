package statuspage

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podworker"
)

func TestDescribeNamesTheCauseFirst(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, tc := range map[string]struct {
		s    podworker.Snapshot
		want string
	}{
		"idle": {
			podworker.Snapshot{State: podworker.Syncing, Since: ago(time.Hour), Next: now.Add(42300 * time.Millisecond)},
			"The pod is up to date; next check in 42s.",
		},
		"crash loop": {
			podworker.Snapshot{
				State: podworker.Syncing, Since: ago(time.Minute), Next: now.Add(1500 * time.Millisecond), Failures: 4,
				Err: `failed to "StartContainer" for "main" with CrashLoopBackOff: "back-off 10s restarting failed container=main"`,
			},
			`The last 4 attempts failed: failed to "StartContainer" for "main" with CrashLoopBackOff: "back-off 10s restarting failed container=main"; retry in 1.5s.`,
		},
		"a missing Secret": {
			podworker.Snapshot{
				State: podworker.Syncing, Since: ago(100 * time.Second), Step: "mount volumes", StepSince: ago(100 * time.Second),
				Err: `volume "conf": secret "s-test" not found.`, Next: now.Add(12 * time.Second),
			},
			`Failing to mount volumes for 1m40s: volume "conf": secret "s-test" not found; retry in 12s.`,
		},
		"a preStop hook that hangs": {
			podworker.Snapshot{
				State: podworker.Terminating, Since: ago(12 * time.Second), Step: "stop containers", StepSince: ago(12 * time.Second),
				Termination: &podworker.TerminationRequest{Cause: "deleted", At: ago(12 * time.Second), GracePeriodSeconds: new(int64(30))},
			},
			"In progress for 12s: stop containers. The containers of the pod have been stopping for 12s. Termination requested 12s ago (deleted); grace period 30 s.",
		},
		"rejected": {
			podworker.Snapshot{
				State: podworker.Finished, Since: ago(5 * time.Second),
				Termination: &podworker.TerminationRequest{Cause: "terminal", At: ago(5 * time.Second), Reason: "OutOfcpu", Message: "Pod was rejected: no cpu"},
			},
			"OutOfcpu: Pod was rejected: no cpu. The pod terminated 5s ago. Termination requested 5s ago (terminal).",
		},
		"preemption": {
			podworker.Snapshot{
				State: podworker.Syncing, Since: ago(3 * time.Second), Step: "wait for other pods to terminate", StepSince: ago(3 * time.Second),
				BlockedBy: []types.UID{"a", "b"}, Next: now.Add(9 * time.Second), Failures: 1, Err: "not admitted yet: no cpu", Restart: true,
			},
			"Waiting for other pods to terminate for 3s: a, b: not admitted yet: no cpu; retry in 9s." +
				" The pod was added again and starts when it has terminated.",
		},
		"the last attempt": {
			podworker.Snapshot{State: podworker.Cleaning, Since: ago(time.Second), Failures: 1, Err: "busy", Next: now},
			"The last attempt failed: busy. The containers have stopped; releasing the resources of the pod for 1s.",
		},
	} {
		tc.s.At = now
		assert.Equal(t, tc.want, describe(tc.s), name)
	}
}
