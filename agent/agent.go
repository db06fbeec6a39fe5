package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/internal/runonce"
	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

// A Config configures an [Agent]. Runtime, Sources and Sink are required.
type Config struct {
	// NodeName is the name of the node in events about the node. Empty: such
	// events are not recorded.
	NodeName string

	// Runtime runs the pods. If it implements runtime.Watcher, changes are
	// detected by its events; if it implements runtime.Checker, pods wait for
	// its network; if it implements runtime.GarbageCollector, terminated
	// containers are removed. Required.
	Runtime runtime.Runtime

	// Sources specify the desired pods, by the name of the source. Required, at least
	// one.
	Sources map[string]podsource.PodSource

	// Static are the names of the sources whose pods are static pods. Each must be in
	// Sources. Nil: no pod is static.
	Static []string

	// Sink records the statuses. Required.
	Sink status.Sink

	// Subsystems are the optional subsystems. The zero value has none.
	Subsystems Subsystems

	// HostIPs returns the addresses of the node, the primary one first:
	// [InterfaceIPs]. It must not block. Nil: statuses contain no host IP.
	HostIPs func() []string

	// Table is the table of the pods, for subsystems that the caller constructs before
	// the agent: they read it, and notify the agent of changed pods. It must not be
	// shared by agents. If nil, New constructs one.
	Table *podworker.Table

	// Retainers are parts of the caller with state for each pod. They are called after the
	// containers of a removed pod were removed, together with the volumes, and again after
	// an error of any part.
	Retainers []podworker.Retainer

	// Record is called with the events of pods and of the node. It must not
	// block. If nil, events are logged.
	Record func(runtime.Event)

	// Adjust changes the configurations of single components, in order: compose.Adjust makes an
	// element of a function. [Adjustable] lists them; another one is an error. Append to it.
	Adjust []compose.Adjustment

	// Logger is used by all components. If nil, logs are discarded.
	Logger *slog.Logger
}

// Subsystems are the optional subsystems of an [Agent]. A nil or zero field leaves the
// subsystem out.
type Subsystems struct {
	// Admitters decide, in this order, whether a new pod may run. Nil: every pod is
	// admitted.
	Admitters pipeline.Admitters

	// Volumes mounts the volumes of pods: volume.Manager. If it is a podworker.Retainer, the
	// volumes of removed pods are removed; see also [VolumeHolder]. If it is a runtime.Watcher,
	// the pods that it reports are synced, for volumes that the runtime copies. Nil: pods have no
	// volumes.
	Volumes pipeline.Volumes

	// Cgroups creates the cgroups of pods: cm.Manager. If it is a podworker.Retainer, the
	// cgroups of removed pods are removed. Nil: the runtime creates them.
	Cgroups pipeline.Cgroups

	// Probes run the probes of containers. The zero value leaves the prober out:
	// containers with probes then count as ready and started while they run.
	Probes prober.Handlers

	// Allocation records the resources that are allocated to pods and decides on
	// resizes. The caller runs it, and adds it to Admitters. Nil: pods have the
	// resources of their spec.
	Allocation *allocation.Manager

	// Images keeps the images of a pod from being removed while it starts:
	// imagegc.Manager. Nil: images are not removed.
	Images pipeline.Images

	// Mirrors creates and deletes the mirror pods of static pods. Nil: there are
	// none.
	Mirrors podworker.Mirrors

	// Claims unprepares the resource claims of pods: dra.Manager. The caller runs it, and
	// passes it to the runtime, which prepares the claims: managers.Config.Claims. Nil:
	// no claims are prepared.
	Claims Claims

	// Ledger records which pods belong to this node: cri.Ledger. It is called after each
	// collection of garbage without an error, with the pods of which something exists. Nil:
	// there is none.
	Ledger podworker.Retainer
}

// Claims unprepares the resource claims of pods. dra.Manager implements it.
type Claims interface {
	pipeline.Claims

	// MayHaveResources reports whether claims of the pod may be prepared. Its terminal
	// phase is not published before. It must not block.
	MayHaveResources(uid types.UID) bool

	// Retain releases the claims of removed pods that do not run. They are unprepared later.
	// It must not block.
	podworker.Retainer
}

// Adjustable returns the types of the configurations that Config.Adjust can change: pleg.Config,
// prober.Config, status.Config, pipeline.Config, podworker.Config, podworker.LoopConfig and
// podsource.MergeConfig. Without Subsystems.Probes there is no prober, and its configuration is not
// changed.
func Adjustable() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[pleg.Config](), reflect.TypeFor[prober.Config](), reflect.TypeFor[status.Config](),
		reflect.TypeFor[pipeline.Config](), reflect.TypeFor[podworker.Config](), reflect.TypeFor[podworker.LoopConfig](),
		reflect.TypeFor[podsource.MergeConfig](),
	}
}

// validate returns an error that names the required field that is missing, or a field that is invalid.
func (cfg *Config) validate() error {
	switch {
	case cfg.Runtime == nil:
		return errors.New("agent: Config.Runtime is nil")
	case len(cfg.Sources) == 0:
		return errors.New("agent: Config.Sources is empty")
	case cfg.Sink == nil:
		return errors.New("agent: Config.Sink is nil")
	}
	if err := compose.CheckAdjust(cfg.Adjust, Adjustable()...); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	return nil
}

// checkWrappers returns an error that names the part that hides an optional interface of a part that it
// wraps.
func (cfg *Config) checkWrappers() error {
	if err := compose.Check(cfg.Runtime, reflect.TypeFor[runtime.Checker](), reflect.TypeFor[runtime.GarbageCollector](), reflect.TypeFor[runtime.Watcher]()); err != nil {
		return fmt.Errorf("Config.Runtime: %w", err)
	}
	if err := compose.Check(cfg.Subsystems.Volumes, reflect.TypeFor[podworker.Retainer](), reflect.TypeFor[VolumeHolder](), reflect.TypeFor[pipeline.BlockedReporter](), reflect.TypeFor[runtime.Watcher]()); err != nil {
		return fmt.Errorf("Config.Subsystems.Volumes: %w", err)
	}
	if err := compose.Check(cfg.Subsystems.Cgroups, reflect.TypeFor[podworker.Retainer]()); err != nil {
		return fmt.Errorf("Config.Subsystems.Cgroups: %w", err)
	}
	return nil
}

// An Agent runs the pods of one node. [New] constructs it.
type Agent struct {
	changes  *pleg.Generator
	health   *RuntimeHealth  // nil: the runtime is not a runtime.Checker
	probes   *prober.Manager // nil: Subsystems.Probes is zero
	statuses *status.Manager
	pipeline *pipeline.Pipeline
	workers  *podworker.Workers
	table    *podworker.Table
	loop     *podworker.Loop
	merge    *podsource.Merge
	volumes  pipeline.Volumes // nil: pods have none

	once           runonce.Guard
	running        chan struct{} // closed when Run has started the components
	sourcesStopped chan struct{}
	ended          chan struct{} // closed when Run returns

	sourcesMu   sync.Mutex // guards the fields below
	stopSources func()     // nil before Run
	draining    bool       // StopSources was called
}

// New constructs the components of an agent and connects them. It starts nothing. It
// returns an error that names the invalid field of cfg or component.
func New(cfg Config) (*Agent, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if err := cfg.checkWrappers(); err != nil {
		return nil, fmt.Errorf("agent: %w", err)
	}
	if cfg.Record == nil && cfg.Logger != nil {
		cfg.Record = logEvents(cfg.Logger)
	}
	a, err := construct(cfg)
	if err != nil {
		return nil, fmt.Errorf("agent: %w", err)
	}
	return a, nil
}

// PLEG returns the generator of pod lifecycle events, which caches the status of each pod.
func (a *Agent) PLEG() *pleg.Generator { return a.changes }

// Health returns the result of the periodic checks of the runtime; nil if the
// runtime is not a runtime.Checker.
func (a *Agent) Health() *RuntimeHealth { return a.health }

// Prober returns the prober; nil without Subsystems.Probes.
func (a *Agent) Prober() *prober.Manager { return a.probes }

// Status returns the manager that computes and delivers the statuses.
func (a *Agent) Status() *status.Manager { return a.statuses }

// Kill terminates a pod and returns a channel that receives the outcome; see podworker.Workers.Kill.
// Table.KillAndWait waits for it. It does not block.
func (a *Agent) Kill(uid types.UID, opts podworker.KillOptions) <-chan podworker.Outcome {
	return a.workers.Kill(uid, opts)
}

// Table returns the table of the pods: the desired ones, and the states of their workers.
func (a *Agent) Table() *podworker.Table { return a.table }

// Snapshot returns the state of a pod, with its current step, its error and its next retry; false if
// the agent has no such pod.
func (a *Agent) Snapshot(uid types.UID) (podworker.Snapshot, bool) { return a.loop.Snapshot(uid) }

// Healthy returns why the sync loop does not apply changes of pods; nil if it does. The runtime has
// checks of its own: [pleg.Generator.Healthy] of PLEG, and Health.
func (a *Agent) Healthy() error { return a.loop.Healthy() }
