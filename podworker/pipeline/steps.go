package pipeline

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

// The names of the steps, in their order. They are values of StepInfo.Step, [podworker.Progress] and
// [podworker.Snapshot], and positions for Config.Steps. The step of a subsystem that is nil is left
// out; its name remains a position.
const (
	// Steps of Sync.
	AdmitPod          = "admit pod"                         // Admission
	ReportStatus      = "report status"                     // and allocate resources, check the deadline
	CheckNetwork      = "check network"                     // Network
	RegisterObjects   = "register objects"                  // Resources.Objects
	StopOutsideCgroup = "stop containers outside of cgroup" // Resources.Cgroups
	CreateCgroup      = "create cgroup"                     // Resources.Cgroups
	CreateMirror      = "create mirror pod"                 // Mirrors
	MountVolumes      = "mount volumes"                     // Resources.Volumes
	StartProbes       = "start probes"                      // Probes
	SyncContainers    = "sync containers"

	// Steps of Terminate. An orphan is not inspected and not reported.
	ReportTermination = "report termination" // and stop probes that restart containers
	StopContainers    = "stop containers"
	InspectContainers = "inspect terminated containers"
	UnprepareClaims   = "unprepare resource claims" // Resources.Claims
	ReportTerminated  = "report terminated containers"

	// Steps of Cleanup.
	ReportFinal       = "report final status"
	UnmountVolumes    = "unmount volumes"         // Resources.Volumes
	UnregisterObjects = "unregister objects"      // Resources.Objects; volumes use them until they are unmounted
	RemoveCgroup      = "remove cgroup"           // Resources.Cgroups
	ReleaseClaims     = "release resource claims" // Resources.Claims; of a pod that had terminated before the agent started
	FinishPod         = "finish pod"              // from here on the object may be deleted
)

// A step is one of the steps of a call. A nil run is a position without a step.
type step struct {
	name string
	run  func(context.Context, *call) error
}

// when returns run, or nil if has is false.
func when(has bool, run func(context.Context, *call) error) func(context.Context, *call) error {
	if !has {
		return nil
	}
	return run
}

// A call is a Sync, Terminate or Cleanup in progress: its arguments, and the results of its steps.
type call struct {
	podworker.SyncRequest         // Pod has its allocated resources
	desired               *v1.Pod // Pod as its source specifies it

	volumes map[string]runtime.Volume
	probes  *runtime.ProbeResults // liveness and startup
	last    *runtime.PodStatus    // after the containers have terminated
	result  podworker.SyncResult
	ended   bool // no further step is executed
	synced  bool // SyncPod was called: containers may run that Status does not have

	// inRuntime is set while SyncPod or KillPod is in progress. Status is then that of the last
	// report, and is guarded by Pipeline.callLock as well.
	inRuntime bool

	// Guarded by Pipeline.mu.
	step  string
	since time.Time

	// The deadline of a Sync, guarded by Pipeline.mu.
	start  time.Time   // of the pod, as far as it is known
	timer  *time.Timer // nil: the pod has no deadline
	cancel context.CancelCauseFunc
}

func (p *Pipeline) newCall(req podworker.SyncRequest) *call {
	c := &call{SyncRequest: req, desired: req.Pod}
	if req.Pod != nil {
		c.Pod = p.allocated(req.Pod)
	}
	return c
}

// end makes the current step the last one.
func (c *call) end(result podworker.SyncResult) { c.result, c.ended = result, true }

// run executes steps in order, until one of them fails or ends the call.
func (p *Pipeline) run(ctx context.Context, steps []step, c *call) error {
	defer p.beginStep(c, "")
	for _, s := range steps {
		p.beginStep(c, s.name)
		if err := s.run(ctx, c); err != nil || c.ended {
			return err
		}
	}
	return nil
}

// beginStep ends the current step of the call and begins the next; "" ends the call.
func (p *Pipeline) beginStep(c *call, name string) {
	now := time.Now()
	p.mu.Lock()
	before, since := c.step, c.since
	c.step, c.since = name, now
	if name == "" {
		delete(p.active, c.UID)
	} else {
		p.active[c.UID] = c
	}
	p.mu.Unlock()
	if before != "" && p.cfg.Hooks.Stepped != nil {
		p.cfg.Hooks.Stepped(StepInfo{UID: c.UID, Step: before, Begin: since, End: now})
	}
}

// Progress implements [podworker.ProgressReporter].
func (p *Pipeline) Progress(uid types.UID) (progress podworker.Progress) {
	p.mu.Lock()
	if c := p.active[uid]; c != nil {
		progress.Step, progress.Since = c.step, c.since
	}
	p.mu.Unlock()
	if volumes, ok := compose.As[BlockedReporter](p.cfg.Resources.Volumes); ok && (progress.Step == MountVolumes || progress.Step == UnmountVolumes) {
		progress.Err, progress.RetryAt = volumes.Blocked(uid)
	}
	return progress
}
