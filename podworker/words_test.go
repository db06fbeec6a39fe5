package podworker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podworker"
)

// What an operator reads of the pods that he asks about.
func TestAnExplanationIsWhatAnOperatorWantsToRead(t *testing.T) { // L-22
	now := time.Unix(1_000_000, 0)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, tc := range map[string]struct {
		e    podworker.Explanation
		want string
	}{
		"at rest": {
			podworker.Explanation{
				State: podworker.Syncing, Since: ago(time.Hour), Wait: podworker.WaitResync, Next: now.Add(42300 * time.Millisecond),
				Containers: []podworker.ContainerSeen{{Name: "main", State: "running", Since: ago(59 * time.Minute)}},
			},
			"pod default/web (u) is syncing, for 1h0m0s. Nothing is to be done; it is looked at again when something changes, or in 42s. Last seen: main has run for 59m0s.",
		},
		"crash loop": {
			podworker.Explanation{
				State: podworker.Syncing, Since: ago(time.Minute), Wait: podworker.WaitBackoff, Next: now.Add(1500 * time.Millisecond), Failures: 4,
				Containers: []podworker.ContainerSeen{{Name: "main", State: "exited", ExitCode: 3, Reason: "Error", Since: ago(8500 * time.Millisecond)}},
				Err:        `failed to "StartContainer" for "main" with CrashLoopBackOff: "back-off 10s restarting failed container=main"`,
			},
			`pod default/web (u) is syncing, for 1m0s. It backs off for another 1.5s. Last seen: main exited with code 3 (Error) 8.5s ago. The last 4 calls failed: failed to "StartContainer" for "main" with CrashLoopBackOff: "back-off 10s restarting failed container=main".`,
		},
		"a volume that takes long": {
			podworker.Explanation{
				State: podworker.Syncing, Since: ago(90 * time.Second), Wait: podworker.WaitCall, Call: "Sync", CallSince: ago(90 * time.Second),
				Step: "volumes", StepSince: ago(89 * time.Second),
			},
			"pod default/web (u) is syncing, for 1m30s. Next step: mount volumes (waiting 1m29s).",
		},
		"a Secret that is missing": {
			podworker.Explanation{
				State: podworker.Syncing, Since: ago(100 * time.Second), Wait: podworker.WaitCall, Call: "Sync", CallSince: ago(100 * time.Second),
				Step: "volumes", StepSince: ago(100 * time.Second), Cause: `volume "conf": secret "s-test" not found.`, RetryAt: now.Add(12 * time.Second),
			},
			`pod default/web (u) is syncing, for 1m40s. Next step: mount volumes (waiting 1m40s): volume "conf": secret "s-test" not found; retry in 12s.`,
		},
		"a volume that stays mounted": {
			podworker.Explanation{
				State: podworker.Cleaning, Since: ago(100 * time.Second), Wait: podworker.WaitCall, Call: "Cleanup", CallSince: ago(100 * time.Second),
				Step: "volumes", StepSince: ago(100 * time.Second), Cause: `volume "data": unmount /x: device or resource busy`, RetryAt: ago(time.Second),
			},
			`pod default/web (u) is cleaning, for 1m40s. Next step: unmount volumes (waiting 1m40s): volume "data": unmount /x: device or resource busy.`,
		},
		"a step of another Handler": {
			podworker.Explanation{
				State: podworker.Syncing, Since: ago(5 * time.Second), Wait: podworker.WaitCall, Call: "Sync", CallSince: ago(5 * time.Second),
				Step: "scrub the disk", StepSince: ago(5 * time.Second),
			},
			"pod default/web (u) is syncing, for 5s. Next step: scrub the disk (waiting 5s).",
		},
		"a preStop hook that hangs": {
			podworker.Explanation{
				State: podworker.Terminating, Since: ago(12 * time.Second), Wait: podworker.WaitCall, Call: "Terminate", CallSince: ago(12 * time.Second),
				Step: "stop", StepSince: ago(12 * time.Second),
				Termination: &podworker.Termination{
					Cause: podworker.CauseDeleted, Asked: ago(12 * time.Second), GracePeriodSeconds: new(int64(30)),
					Running: []string{"main", "sandbox"}, PreStop: []string{"main"},
				},
			},
			"pod default/web (u) is terminating, for 12s. Next step: stop its containers (waiting 12s)." +
				" It was told to end 12s ago because its deletion was asked for, with a grace of 30 s, of which 18s are left." +
				" Still running: main, sandbox. With a preStop hook, which runs before TERM: main.",
		},
		"one that is stopped in vain": {
			podworker.Explanation{
				State: podworker.Terminating, Since: ago(time.Minute), Wait: podworker.WaitCall, Call: "Terminate", CallSince: ago(time.Minute),
				Termination: &podworker.Termination{
					Cause: podworker.CauseRemoved, Asked: ago(time.Minute), GracePeriodSeconds: new(int64(30)), Running: []string{"main"},
				},
			},
			"pod default/web (u) is terminating, for 1m0s. Terminate has run for 1m0s." +
				" It was told to end 1m0s ago because no source wants it any more, with a grace of 30 s, which was over 30s ago. Still running: main.",
		},
		"refused": {
			podworker.Explanation{
				State: podworker.Finished, Since: ago(5 * time.Second), Wait: podworker.WaitObject,
				Termination: &podworker.Termination{
					Cause: podworker.CauseEnded, Asked: ago(5 * time.Second), Reason: "OutOfcpu", Message: "Pod was rejected: Node didn't have enough resource: cpu",
				},
			},
			"pod default/web (u) is finished, for 5s. Nothing is to be done; it is forgotten when no source wants it any more." +
				" It came to its end 5s ago: OutOfcpu: Pod was rejected: Node didn't have enough resource: cpu.",
		},
		"a job that is done": {
			podworker.Explanation{
				State: podworker.Finished, Since: ago(5 * time.Second), Wait: podworker.WaitObject,
				Termination: &podworker.Termination{Cause: podworker.CauseEnded, Asked: ago(5 * time.Second)},
			},
			"pod default/web (u) is finished, for 5s. Nothing is to be done; it is forgotten when no source wants it any more. It came to its end 5s ago.",
		},
		"a static pod whose turn has not come": {
			podworker.Explanation{State: podworker.Waiting, Static: true, Since: ago(3 * time.Second), Wait: podworker.WaitTurn, For: "old"},
			"static pod default/web (u) is waiting, for 3s. It waits for pod old, which has its name, to finish.",
		},
		"one for which others give way": {
			podworker.Explanation{
				State: podworker.Syncing, Since: ago(3 * time.Second), Wait: podworker.WaitVictims, Victims: []types.UID{"a", "b"}, Next: now.Add(9 * time.Second),
				Failures: 1, Err: "podworker: not admitted yet: Node didn't have enough resource: cpu",
			},
			"pod default/web (u) is syncing, for 3s. It waits for the end of pods that give way to it: a, b; it is tried again then, or in 9s." +
				" The last call failed: podworker: not admitted yet: Node didn't have enough resource: cpu.",
		},
	} {
		tc.e.At, tc.e.UID, tc.e.Namespace, tc.e.Name = now, "u", "default", "web"
		assert.Equal(t, tc.want, tc.e.String(), name)
		_, words, _ := strings.Cut(tc.want, " (u) is ")
		assert.Equal(t, words, tc.e.Words(), name)
	}
}
