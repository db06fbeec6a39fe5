package podworker

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// String says it in a few sentences, for people: how far the pod is, what it
// waits for, why it ends, what went wrong, what comes next.
func (e Explanation) String() string {
	name := string(e.UID)
	if e.Name != "" {
		name = e.Namespace + "/" + e.Name + " (" + name + ")"
	}
	kind := "pod"
	if e.Static {
		kind = "static pod"
	}
	return kind + " " + name + " is " + e.Words()
}

// Words says the same where it is known which pod is meant: "syncing, for 3s.
// Nothing is to be done; …".
func (e Explanation) Words() string {
	var b strings.Builder
	b.WriteString(e.State.String())
	if !e.Since.IsZero() {
		fmt.Fprintf(&b, ", for %s", e.ago(e.Since))
	}
	b.WriteString(".")
	if wait := e.waiting(); wait != "" {
		b.WriteString(" " + wait)
	}
	if t := e.Termination; t != nil {
		b.WriteString(" " + t.words(e))
	}
	if e.Termination == nil && len(e.Containers) > 0 {
		var seen []string
		for _, c := range e.Containers {
			seen = append(seen, c.words(e))
		}
		b.WriteString(" Last seen: " + strings.Join(seen, ", ") + ".")
	}
	if e.Err != "" {
		fmt.Fprintf(&b, " %s: %s.", times(e.Failures), strings.TrimSuffix(e.Err, "."))
	}
	if e.StartsOver {
		b.WriteString(" It was wanted anew meanwhile, and starts over when it has finished.")
	}
	if e.Doomed {
		b.WriteString(" It was wanted anew meanwhile, and told to end since: it will not start over.")
	}
	return b.String()
}

// waiting says what the pod waits for, and what comes next.
func (e Explanation) waiting() string {
	in := rounded(e.Next.Sub(e.At))
	switch e.Wait {
	case WaitTurn:
		return fmt.Sprintf("It waits for pod %s, which has its name, to finish.", e.For)
	case WaitLeftOver:
		return fmt.Sprintf("It waits for pod %s, which an earlier agent left under its name, to stop; that is looked at again in %v.", e.For, in)
	case WaitPlace:
		return fmt.Sprintf("%s has been due for %s, and waits for its place among the calls in flight.", e.Call, e.ago(e.WaitSince))
	case WaitStatus:
		return fmt.Sprintf("%s has waited %s for a look at the runtime that shows what the last call did.", e.Call, e.ago(e.WaitSince))
	case WaitCall:
		if e.Step == "" {
			return fmt.Sprintf("%s has run for %s.", e.Call, e.ago(e.CallSince))
		}
		return e.nextStep()
	case WaitVictims:
		return fmt.Sprintf("It waits for the end of pods that give way to it: %s; it is tried again then, or in %v.", join(e.Victims), in)
	case WaitRetry:
		return fmt.Sprintf("It is tried again in %v.", in)
	case WaitNetwork:
		return fmt.Sprintf("It waits for the node's network, and is tried again in %v.", in)
	case WaitBackoff:
		return fmt.Sprintf("It backs off for another %v.", in)
	case WaitDeadline:
		return fmt.Sprintf("It is looked at again when something changes, or at its deadline in %v.", in)
	case WaitResync:
		return fmt.Sprintf("Nothing is to be done; it is looked at again when something changes, or in %v.", in)
	case WaitObject:
		return "Nothing is to be done; it is forgotten when no source wants it any more."
	case WaitSources:
		return "No source wants it so far; it is ended when all have spoken. Not heard of yet: " + strings.Join(e.Sources, ", ") + "."
	}
	return ""
}

// nextStep describes the step that the call in flight has not completed.
func (e Explanation) nextStep() string {
	text := fmt.Sprintf("Next step: %s (waiting %s)", stepVerb(e.Call, e.Step), e.ago(e.StepSince))
	if e.Cause != "" {
		text += ": " + strings.TrimSuffix(e.Cause, ".")
		if in := e.RetryAt.Sub(e.At); in > 0 {
			text += fmt.Sprintf("; retry in %v", rounded(in))
		}
	}
	return text + "."
}

// stepVerb describes a step of a [Pipeline]; it returns other steps as they are.
func stepVerb(call, step string) string {
	switch cleanup := call == callCleanup.String(); {
	case step == stepVolumes && cleanup:
		return "unmount volumes"
	case step == stepVolumes:
		return "mount volumes"
	case step == "cgroup" && cleanup:
		return "remove its cgroup"
	case step == "cgroup":
		return "create its cgroup"
	case step == "admission":
		return "admit the pod"
	case step == "status":
		return "report its status"
	case step == "mirror pod":
		return "create its mirror pod"
	case step == "runtime":
		return "start and stop containers"
	case step == "stop":
		return "stop its containers"
	case step == "last look":
		return "inspect what still runs"
	}
	return step
}

// words says why and how the pod ends.
func (t *Termination) words(e Explanation) string {
	var b strings.Builder
	switch {
	case t.Cause == CauseEnded && t.Reason != "": // refused, past its deadline
		fmt.Fprintf(&b, "It came to its end %s ago: %s: %s", e.ago(t.Asked), t.Reason, t.Message)
	case t.Cause == CauseEnded:
		fmt.Fprintf(&b, "It came to its end %s ago", e.ago(t.Asked))
	default:
		fmt.Fprintf(&b, "It was told to end %s ago because %s", e.ago(t.Asked), t.Cause)
		if t.Reason != "" {
			fmt.Fprintf(&b, " (%s: %s)", t.Reason, t.Message)
		}
	}
	if t.GracePeriodSeconds != nil && e.State < Cleaning {
		fmt.Fprintf(&b, ", with a grace of %d s", *t.GracePeriodSeconds)
		if e.Wait == WaitCall && e.State == Terminating {
			left := time.Duration(*t.GracePeriodSeconds)*time.Second - e.At.Sub(e.CallSince)
			if left > 0 {
				fmt.Fprintf(&b, ", of which %s are left", rounded(left))
			} else {
				fmt.Fprintf(&b, ", which was over %s ago", rounded(-left))
			}
		}
	}
	b.WriteString(".")
	switch {
	case e.State >= Cleaning:
	case len(t.Running) > 0:
		fmt.Fprintf(&b, " Still running: %s.", strings.Join(t.Running, ", "))
		if len(t.PreStop) > 0 {
			fmt.Fprintf(&b, " With a preStop hook, which runs before TERM: %s.", strings.Join(t.PreStop, ", "))
		}
	default:
		b.WriteString(" Nothing of it was seen running.")
	}
	if t.Waiters > 0 {
		fmt.Fprintf(&b, " Waiting to hear of its end: %d.", t.Waiters)
	}
	return b.String()
}

func (e Explanation) ago(t time.Time) string {
	return rounded(e.At.Sub(t)).String()
}

// rounded leaves out what nobody reads.
func rounded(d time.Duration) time.Duration {
	if d >= 10*time.Second {
		return d.Round(time.Second)
	}
	return d.Round(time.Millisecond)
}

func join(uids []types.UID) string {
	var names []string
	for _, uid := range uids {
		names = append(names, string(uid))
	}
	return strings.Join(names, ", ")
}

func times(failures int) string {
	if failures == 1 {
		return "The last call failed"
	}
	return fmt.Sprintf("The last %d calls failed", failures)
}
