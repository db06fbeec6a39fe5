package dra

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm/state"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/internal/runonce"
)

// Claims reads ResourceClaims.
type Claims interface {
	// GetClaim returns the current object, not a cached one: a claim is deallocated and
	// allocated again while it keeps its name. The manager does not change it. It is called
	// concurrently.
	GetClaim(ctx context.Context, namespace, name string) (*resourceapi.ResourceClaim, error)
}

// Plugins calls the plugins of DRA drivers. registry.Registry implements it. Its methods are
// called concurrently, also for the same driver, but not for the same claim.
type Plugins interface {
	// Registered reports whether the plugin of a driver can be called.
	Registered(driver string) bool

	// Prepare calls NodePrepareResources. The result has one entry for each claim. An
	// error means that no claim is prepared for certain; ErrNotRegistered that the driver
	// was not called.
	Prepare(ctx context.Context, driver string, claims []ClaimRef) (map[types.UID]Prepared, error)

	// Unprepare calls NodeUnprepareResources. The result has one entry for each claim, nil
	// if it is unprepared.
	Unprepare(ctx context.Context, driver string, claims []ClaimRef) (map[types.UID]error, error)
}

// Prepared is the result of NodePrepareResources for one claim.
type Prepared struct {
	Devices []Device
	Err     error // Devices are not valid
}

// ErrNotRegistered is wrapped by the error for a driver that has no registered plugin.
var ErrNotRegistered = errors.New("not registered")

func notRegistered(driver string) error {
	return fmt.Errorf("DRA driver %s is %w", driver, ErrNotRegistered)
}

// Config configures a [Manager].
type Config struct {
	// Claims reads the claims of pods. Required.
	Claims Claims

	// Plugins calls the drivers. Required.
	Plugins Plugins

	// Store stores the claims that may be prepared. Required: state.File of StateFile in
	// the root directory, where a kubelet has it.
	Store state.Store

	// CallTimeout is the deadline of each call of a driver. Zero means 45 seconds.
	CallTimeout time.Duration

	// Period is the time between two attempts to unprepare the claims of released pods.
	// Zero means 1 minute.
	Period time.Duration

	// Logger. If nil, messages are discarded.
	Logger *slog.Logger

	Hooks Hooks
}

// Hooks observe the manager, for metrics. Each may be nil. They are called with no lock
// held and must not block.
type Hooks struct {
	// Operated is called after PrepareResources and UnprepareResources, unless the pod has
	// no claims.
	Operated func(OperationInfo)

	// Skipped is called when a driver is not called for a claim because of
	// skipNodeOperations in its allocation.
	Skipped func(SkipInfo)
}

// Join returns Hooks that call the functions of h and then those of others, in order.
func (h Hooks) Join(others ...Hooks) Hooks {
	for _, o := range others {
		compose.Add(&h.Operated, o.Operated)
		compose.Add(&h.Skipped, o.Skipped)
	}
	return h
}

// A SkipInfo is a call of a driver that an allocated claim does not need.
type SkipInfo struct {
	Driver string
	Method string // "NodePrepareResources", "NodeUnprepareResources"
}

// An OperationInfo is the result of an operation for a pod.
type OperationInfo struct {
	Type     string // "PrepareResources", "UnprepareResources"
	PodUID   types.UID
	Duration time.Duration
	Err      error
}

// A Manager prepares the ResourceClaims of pods with the plugins of DRA drivers. Safe for
// concurrent use.
type Manager struct {
	cfg   Config
	ran   runonce.Guard
	locks keyLocks
	wake  chan struct{} // of capacity 1: a pod was released

	// mu guards the fields below.
	mu             sync.Mutex
	ledger         ledger
	released       map[types.UID]bool // by Retain; their claims are to be unprepared
	unpreparing    map[types.UID]bool // by Reconcile
	version, saved uint64             // of the ledger in memory and on disk

	disk chan struct{} // held by the goroutine that writes the state, without mu
}

// New returns a Manager for cfg and restores its checkpoint. It starts nothing.
func New(cfg Config) (*Manager, error) {
	switch {
	case cfg.Claims == nil:
		return nil, errors.New("dra: Config.Claims is nil")
	case cfg.Plugins == nil:
		return nil, errors.New("dra: Config.Plugins is nil")
	case cfg.Store == nil:
		return nil, errors.New("dra: Config.Store is nil")
	case cfg.CallTimeout < 0 || cfg.Period < 0:
		return nil, errors.New("dra: Config.CallTimeout or Config.Period is negative")
	}
	if cfg.CallTimeout == 0 {
		cfg.CallTimeout = 45 * time.Second
	}
	if cfg.Period == 0 {
		cfg.Period = time.Minute
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Hooks.Operated == nil {
		cfg.Hooks.Operated = func(OperationInfo) {}
	}
	if cfg.Hooks.Skipped == nil {
		cfg.Hooks.Skipped = func(SkipInfo) {}
	}
	m := &Manager{cfg: cfg, wake: make(chan struct{}, 1), disk: make(chan struct{}, 1), ledger: ledger{}, released: map[types.UID]bool{}, unpreparing: map[types.UID]bool{}}
	saved, _, err := state.Restore(cfg.Store, decode, nil, cfg.Logger)
	if err != nil {
		return nil, fmt.Errorf("dra: %w", err)
	}
	if saved != nil {
		m.ledger = saved
	}
	return m, nil
}

// Run unprepares the claims of released pods until ctx is done, and returns nil when its
// calls have returned. A second call returns an error.
func (m *Manager) Run(ctx context.Context) error {
	if err := m.ran.Enter("dra: Manager"); err != nil {
		return err
	}
	ticker := time.NewTicker(m.cfg.Period)
	defer ticker.Stop()
	var calls sync.WaitGroup
	defer calls.Wait()
	for {
		m.reconcile(ctx, &calls) // does not wait: a driver may not answer
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		case <-m.wake:
		}
	}
}

// Reconcile unprepares the claims of the released pods, and returns when the calls have
// returned, except for pods whose claims another call unprepares. Failures are logged; the
// next call retries. Run does the same.
func (m *Manager) Reconcile(ctx context.Context) {
	var calls sync.WaitGroup
	m.reconcile(ctx, &calls)
	calls.Wait()
}

func (m *Manager) reconcile(ctx context.Context, calls *sync.WaitGroup) {
	for _, uid := range m.toUnprepare() {
		calls.Go(func() {
			if err := m.UnprepareResources(ctx, uid); err != nil && ctx.Err() == nil {
				m.cfg.Logger.Warn("Failed to unprepare resource claims of a removed pod; will retry", "podUID", uid, "err", err)
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			delete(m.unpreparing, uid)
		})
	}
}

// toUnprepare returns the released pods, and marks them.
func (m *Manager) toUnprepare() (uids []types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, uid := range m.ledger.pods() {
		if m.released[uid] && !m.unpreparing[uid] {
			m.unpreparing[uid] = true
			uids = append(uids, uid)
		}
	}
	return uids
}

// Retain releases all pods for which keep returns false: Run unprepares their claims. No
// container of these pods may run, and they must not start. It is for pods that pod workers
// do not terminate: those that were removed while no agent ran. Retain does not wait for
// drivers, and calls keep with no lock held. It implements podworker.Retainer and returns nil.
func (m *Manager) Retain(_ context.Context, keep func(uid types.UID) bool) error {
	m.mu.Lock()
	uids := m.ledger.pods()
	m.mu.Unlock()
	released := map[types.UID]bool{}
	for _, uid := range uids {
		if !keep(uid) {
			released[uid] = true
		}
	}
	m.mu.Lock()
	fresh := false
	for uid := range released {
		fresh = fresh || !m.released[uid]
	}
	maps.Copy(m.released, released)
	m.mu.Unlock()
	if fresh {
		select {
		case m.wake <- struct{}{}:
		default:
		}
	}
	return nil
}

// MayHaveResources reports whether claims may be prepared for the pod: its terminal phase
// must not be published, since the control plane then deallocates them (rule st-77).
func (m *Manager) MayHaveResources(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.ledger.claimsOf(uid)) > 0
}

// Pods returns the UIDs of the pods with devices of a driver, in order: their status
// depends on the health of its devices.
func (m *Manager) Pods(driver string) []types.UID {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ledger.podsOf(driver)
}

// InUse returns the number of prepared claims, in total and by driver. A claim may have
// devices of several drivers.
func (m *Manager) InUse() (all int, byDriver map[string]int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ledger.inUse()
}

// devices returns the devices of a container; ok is false if its claims are not prepared.
func (m *Manager) devices(pod *v1.Pod, c *v1.Container) (devices []UsedDevice, ok bool, err error) {
	uses, err := containerUses(pod, c)
	if err != nil || len(uses) == 0 {
		return nil, true, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	devices, ok = m.ledger.devices(pod.UID, pod.Namespace, uses)
	return devices, ok, nil
}

// UsedDevices returns the prepared devices of a container, one for each of its requests that
// a device satisfies. It returns nil if the claims are not prepared, and does not block.
func (m *Manager) UsedDevices(pod *v1.Pod, c *v1.Container) []UsedDevice {
	devices, ok, err := m.devices(pod, c)
	if err != nil || !ok {
		return nil
	}
	return devices
}

// CDIDevices returns the CDI devices of a container. If its claims are not prepared, as
// after the loss of the checkpoint, it prepares those of the pod first.
func (m *Manager) CDIDevices(ctx context.Context, pod *v1.Pod, c *v1.Container) ([]string, error) {
	devices, ok, err := m.devices(pod, c)
	if err == nil && !ok {
		if err := m.PrepareResources(ctx, pod); err != nil {
			return nil, err
		}
		devices, ok, err = m.devices(pod, c)
		if err == nil && !ok { // another call has unprepared them
			err = errors.New("resource claims are not prepared")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("dynamic resources of container %s: %w", c.Name, err)
	}
	return cdiDevices(devices), nil
}
