package sim

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/runtime"
)

// An Entry is one thing that happened in a run: a line of its trace. Which
// fields are set depends on Kind.
type Entry struct {
	// At is when, since the start of the run. Of entries of one time, the order
	// is that in which they happened.
	At time.Duration

	// Agent tells which agent did it, the first is 1. Zero: none did.
	Agent int

	Kind EntryKind

	// Pod by name and UID, if it concerns one.
	Pod string
	UID types.UID

	Step      *Step                    // StepTaken
	Static    bool                     // Wanted: it comes from a manifest
	CPU       int64                    // Resized: thousandths that the container has now
	Object    *v1.Pod                  // Wanted, Changed, ResizeAsked, Deleting, Gone: as it is then, or was last; Said, SaidDeleted, SyncBegan, KillBegan: as the agent knows it
	Container *runtime.ContainerStatus // Started, Exited, Removed
	Sandbox   *runtime.SandboxStatus   // SandboxReady, SandboxStopped, SandboxRemoved
	Status    *v1.PodStatus            // Said
	Event     *pleg.Event              // Noticed
	Call      string                   // Called: the method; Resized: the ID of the container
	Grace     *int64                   // Called: of a KillPod, in seconds
	Err       string                   // Called: what it failed with, if it did
	Image     string                   // ImageRemoved: its name
	Volume    string                   // Mounted, Unmounted: its name in the pod
	Probe     *ProbeRun                // Probed
	Broken    *Violation               // LawBroken
}

// An EntryKind says what happened.
type EntryKind string

// The kinds of entries.
const (
	StepTaken  EntryKind = "step"        // a step of the schedule was taken
	AgentBegan EntryKind = "agent-began" // an agent was started
	AgentDied  EntryKind = "agent-died"  // it was killed
	FaultsOver EntryKind = "faults-over" // from here on nothing goes wrong any more
	Rested     EntryKind = "rested"      // the end has come, for one pod
	RunEnded   EntryKind = "run-ended"

	Wanted      EntryKind = "wanted"       // a source wants a pod that it did not want
	Changed     EntryKind = "changed"      // it wants it otherwise
	ResizeAsked EntryKind = "resize-asked" // it wants it with other resources
	Deleting    EntryKind = "deleting"     // it wants it deleted
	Failed      EntryKind = "failed"       // somebody else told the API that it has failed
	Evicted     EntryKind = "evicted"      // an agent was told to end it
	Gone        EntryKind = "gone"         // it does not know it any more

	Created        EntryKind = "created" // a container was made, and does not run yet
	Started        EntryKind = "started" // a container runs: the truth, seen by nobody yet
	Exited         EntryKind = "exited"
	Removed        EntryKind = "removed"
	SandboxReady   EntryKind = "sandbox-ready"
	SandboxStopped EntryKind = "sandbox-stopped"
	SandboxRemoved EntryKind = "sandbox-removed"

	Called      EntryKind = "called"       // an agent called the outside, which has answered; of SyncPod, PodStatus and lists only failures
	KillBegan   EntryKind = "kill-began"   // KillPod was called, with Grace
	SyncBegan   EntryKind = "sync-began"   // SyncPod was called
	SyncEnded   EntryKind = "sync-ended"   // it has returned, to an agent that runs; in runs with images
	Noticed     EntryKind = "noticed"      // pleg told an agent of a change
	Said        EntryKind = "said"         // the sink took a status
	SaidDeleted EntryKind = "said-deleted" // the sink was told that nothing of the pod is left

	Followed  EntryKind = "followed" // somebody who follows pleg, and is slow, was told
	Mounted   EntryKind = "mounted"  // a volume of the pod is set up
	Unmounted EntryKind = "unmounted"

	Granted EntryKind = "granted" // an agent allocated resources to the pod, which are those of Object
	Resized EntryKind = "resized" // the runtime gave a container CPU

	ImageRemoved EntryKind = "image-removed" // from the node

	Probed EntryKind = "probed" // a probe of an agent had this result
	Asked  EntryKind = "asked"  // the agent was asked how it is; Err is its answer

	LawBroken EntryKind = "law-broken"
)

// String returns the entry in one line, without its end.
func (e Entry) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-14v %-15s", e.At, e.Kind)
	if e.Agent > 0 {
		fmt.Fprintf(&b, " agent-%d", e.Agent)
	}
	if e.UID != "" {
		fmt.Fprintf(&b, " %s", e.UID)
		if e.Pod != "" && e.Pod != string(e.UID) {
			fmt.Fprintf(&b, " (%s)", e.Pod)
		}
	}
	switch {
	case e.Step != nil:
		fmt.Fprintf(&b, " %s", e.Step)
	case e.Container != nil:
		fmt.Fprintf(&b, " %s %s restarts=%d", e.Container.Name, e.Container.ID, e.Container.RestartCount)
		if e.Container.State == runtime.ContainerExited {
			fmt.Fprintf(&b, " code=%d %s", e.Container.ExitCode, e.Container.Reason)
		}
	case e.Sandbox != nil:
		fmt.Fprintf(&b, " %s", e.Sandbox.ID)
	case e.Status != nil:
		fmt.Fprintf(&b, " %s", summary(e.Status))
	case e.Event != nil:
		fmt.Fprintf(&b, " %s %s", e.Event.Type, e.Event.ContainerID)
	case e.Kind == Granted:
		fmt.Fprintf(&b, " %s", cpuOf(e.Object))
	case e.Kind == Resized:
		fmt.Fprintf(&b, " %s cpu=%d", e.Call, e.CPU)
	case e.Image != "":
		fmt.Fprintf(&b, " %s", e.Image)
	case e.Volume != "":
		fmt.Fprintf(&b, " %s", e.Volume)
	case e.Probe != nil:
		fmt.Fprintf(&b, " %s", e.Probe)
	case e.Broken != nil:
		fmt.Fprintf(&b, " %s", e.Broken)
	case e.Call != "":
		fmt.Fprintf(&b, " %s", e.Call)
	}
	if e.Grace != nil {
		fmt.Fprintf(&b, " grace=%d", *e.Grace)
	}
	if e.Err != "" {
		fmt.Fprintf(&b, " err=%q", e.Err)
	}
	return b.String()
}

// summary returns a status in a few words.
func summary(s *v1.PodStatus) string {
	w := []string{string(s.Phase)}
	if s.Reason != "" {
		w = append(w, s.Reason)
	}
	for _, c := range s.Conditions {
		if c.Type == v1.PodReady && c.Status == v1.ConditionTrue {
			w = append(w, "ready")
		}
	}
	for _, list := range [][]v1.ContainerStatus{s.InitContainerStatuses, s.ContainerStatuses} {
		for _, c := range list {
			text := c.Name + "="
			switch {
			case c.State.Running != nil:
				text += "running"
			case c.State.Terminated != nil:
				text += fmt.Sprintf("exited-%d", c.State.Terminated.ExitCode)
			case c.State.Waiting != nil:
				text += c.State.Waiting.Reason
			}
			if c.RestartCount > 0 {
				text += fmt.Sprintf("/%d", c.RestartCount)
			}
			w = append(w, text)
		}
	}
	return strings.Join(w, " ")
}
