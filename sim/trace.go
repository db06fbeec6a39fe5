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

// An Entry is one line of the trace of a run. Kind determines which fields are set.
type Entry struct {
	// At is the time since the start of the run. Entries of the same time are in the
	// order in which they happened.
	At time.Duration

	// Agent is the number of the agent that caused the entry, starting at 1. Zero means
	// none.
	Agent int

	Kind EntryKind

	// Pod and UID are the name and UID of the affected pod; empty: none.
	Pod string
	UID types.UID

	Step   *Step // StepTaken
	Static bool  // PodAdded: the pod is from a manifest
	CPU    int64 // Resized: the container's CPU, in thousandths

	// Stopped reports that the agent stopped the container (Exited). Only a Checker uses it: simulated
	// containers exit with 143 if they are stopped, and never by themselves.
	Stopped bool

	// Object is the pod after the change, or the last one (PodAdded, PodChanged,
	// ResizeRequested, DeletionRequested, MarkedFailed, PodRemoved), or the pod with which
	// the agent made the call (StatusUpdated, DeletePodCalled, SyncPodCalled,
	// KillPodCalled, ResourcesAllocated, Probed).
	Object *v1.Pod

	Container *runtime.ContainerStatus // Created, Started, Exited, Removed
	Sandbox   *runtime.SandboxStatus   // SandboxReady, SandboxStopped, SandboxRemoved
	Status    *v1.PodStatus            // StatusUpdated
	Event     *pleg.Event              // EventReceived, EventFollowed
	Call      string                   // Called: the method; Resized: the ID of the container; PodRestored: of the sandbox
	Grace     *int64                   // KillPodCalled: the grace period in seconds; nil: the pod's own
	Err       string                   // Called: the error; HealthChecked: the error, empty if healthy
	Image     string                   // ImageRemoved: its name
	Volume    string                   // Mounted, Unmounted: its name in the pod
	Claim     string                   // ClaimPrepared, ClaimUnprepared: its name
	Probe     *ProbeRun                // Probed
	Violation *Violation               // InvariantViolated
}

// An EntryKind is the kind of an Entry.
type EntryKind string

// The kinds of entries.
const (
	StepTaken    EntryKind = "step"          // a step of the schedule was applied
	AgentStarted EntryKind = "agent-started" // an agent was started
	AgentKilled  EntryKind = "agent-killed"  // the agent was killed
	FaultsEnded  EntryKind = "faults-ended"  // there are no faults from here on
	PodSettled   EntryKind = "pod-settled"   // the final state of one pod
	RunEnded     EntryKind = "run-ended"

	PodAdded          EntryKind = "pod-added"          // the pod was added to its source
	PodChanged        EntryKind = "pod-changed"        // its spec changed in the source
	ResizeRequested   EntryKind = "resize-requested"   // its resource requests changed in the source
	DeletionRequested EntryKind = "deletion-requested" // it got a deletionTimestamp
	MarkedFailed      EntryKind = "marked-failed"      // another client set its phase to Failed
	Evicted           EntryKind = "evicted"            // an agent was instructed to evict it
	PodRemoved        EntryKind = "pod-removed"        // it was removed from its source

	Created        EntryKind = "created" // a container was created and not started
	Started        EntryKind = "started" // a container was started, according to the runtime
	Exited         EntryKind = "exited"
	Removed        EntryKind = "removed"
	SandboxReady   EntryKind = "sandbox-ready"
	SandboxStopped EntryKind = "sandbox-stopped"
	SandboxRemoved EntryKind = "sandbox-removed"

	Called          EntryKind = "called"            // a call to the outside failed because of a fault
	KillPodCalled   EntryKind = "kill-pod"          // KillPod was called with Grace
	SyncPodCalled   EntryKind = "sync-pod"          // SyncPod was called
	SyncPodReturned EntryKind = "sync-pod-returned" // SyncPod has returned to a running agent; only in runs that remove images
	EventReceived   EntryKind = "event-received"    // pleg passed an event to an agent
	StatusUpdated   EntryKind = "status-updated"    // UpdatePodStatus of the sink was called
	DeletePodCalled EntryKind = "delete-pod"        // DeletePod of the sink was called

	EventFollowed EntryKind = "event-followed" // pleg passed an event to a slow follower
	Mounted       EntryKind = "mounted"        // a volume of the pod was set up
	Unmounted     EntryKind = "unmounted"

	ClaimPrepared   EntryKind = "claim-prepared"   // a driver prepared a claim
	ClaimUnprepared EntryKind = "claim-unprepared" // a driver or a reboot reverted that

	ResourcesAllocated EntryKind = "resources-allocated" // an agent allocated the resources of Object
	Resized            EntryKind = "resized"             // the runtime set the CPU of a container
	HookSucceeded      EntryKind = "hook-succeeded"      // a postStart hook of a container has succeeded

	PodCheckpointed EntryKind = "pod-checkpointed" // the runtime wrote a checkpoint of a pod
	PodRestored     EntryKind = "pod-restored"     // the runtime restored a sandbox with created containers

	ImageRemoved EntryKind = "image-removed" // an image was removed from the node

	Probed        EntryKind = "probed"         // a probe of an agent returned a result
	HealthChecked EntryKind = "health-checked" // the agent's health was checked

	InvariantViolated EntryKind = "invariant-violated"
)

// String returns the entry as one line, without a line break.
func (e Entry) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-14v %-18s", e.At, e.Kind)
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
		fmt.Fprintf(&b, " %s", statusSummary(e.Status))
	case e.Event != nil:
		fmt.Fprintf(&b, " %s %s", e.Event.Type, e.Event.ContainerID)
	case e.Kind == ResourcesAllocated:
		fmt.Fprintf(&b, " %s", cpuRequests(e.Object))
	case e.Kind == Resized:
		fmt.Fprintf(&b, " %s cpu=%d", e.Call, e.CPU)
	case e.Image != "":
		fmt.Fprintf(&b, " %s", e.Image)
	case e.Volume != "":
		fmt.Fprintf(&b, " %s", e.Volume)
	case e.Claim != "":
		fmt.Fprintf(&b, " %s", e.Claim)
	case e.Probe != nil:
		fmt.Fprintf(&b, " %s", e.Probe)
	case e.Violation != nil:
		fmt.Fprintf(&b, " %s", e.Violation)
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

// statusSummary returns the phase, reason, readiness and container states of a status.
func statusSummary(s *v1.PodStatus) string {
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
