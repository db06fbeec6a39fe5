package fakecri

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/internal/broadcast"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// Config configures a [Runtime]. With the zero value all calls succeed, containers run
// until they are stopped, and any image can be pulled immediately.
type Config struct {
	// Name is the name that Version reports, and the scheme of container IDs in pod
	// statuses. If empty, it is "fakecri".
	Name string

	// Behaviors specifies how containers run.
	Behaviors fake.Behaviors

	// Images specifies images by the names that pods use. A name without tag and digest
	// matches all tags that have no entry, and "*" all images that have none. Images
	// that do not match behave like the zero fake.Image.
	Images map[string]fake.Image

	// Handlers are the runtime handlers in addition to the default one, which has the
	// names "" and "runc".
	Handlers []string

	// Faults returns the fault of a call. It is called concurrently. See [fake.Always],
	// [fake.Every] and [fake.Random]. Over a socket, an error without a gRPC status gets the
	// code Unknown. If nil, there are no faults.
	Faults func(fake.Call) fake.Fault

	// Observe is called for each change of a sandbox or container, in order and never
	// concurrently, at the time of the change, without locks held. It may call the
	// Runtime. While it blocks, changes by other goroutines are queued. May be nil.
	Observe func(Change)

	// Seed determines IDs: the same calls in the same order have the same IDs.
	Seed uint64

	// WriteLogs writes the output of containers to their log files, given by
	// LogDirectory of the sandbox and LogPath of the container, at the time of the
	// output.
	WriteLogs bool

	// Listen makes endpoints of containers listen on 127.0.0.1; Runtime.Endpoint
	// returns the address. It cannot be used in a testing/synctest bubble, whose time
	// does not advance while a goroutine listens; use Runtime.DialContext there.
	Listen bool

	// PodCheckpoints implements CheckpointPod and RestorePod, which are alpha in Kubernetes 1.38.
	// A checkpoint is a file in the directory of the request, and has the configurations of the
	// containers and how long they have run. If false, both return Unimplemented.
	PodCheckpoints bool

	// Logger receives errors that cannot be returned, for example of writing a log
	// file. Its handler must not call the Runtime. If nil, they are discarded.
	Logger *slog.Logger
}

// A Runtime is an in-memory CRI runtime. Safe for concurrent use. It has no goroutines
// unless it listens or serves connections, and need not be closed.
//
// Returned messages may be shared between responses and must not be modified.
type Runtime struct {
	cfg Config
	log *slog.Logger

	mu          sync.Mutex // guards the fields below; not held while blocking or calling callbacks
	ids         *rand.ChaCha8
	down        bool
	calls       map[string]int                  // of each method, since New
	inflight    map[int]context.CancelCauseFunc // the calls in progress
	entered     int                             // number of calls since New
	starts      int                             // number of container starts since New
	pods        map[string]*pod                 // by UID
	names       map[string]string               // of sandboxes and containers, to the IDs that have them
	sandboxes   chain[*sandbox]
	containers  chain[*container]
	lastIP      uint32
	mislabelled int                                                   // number of objects whose pod UID label differs from the UID
	events      *broadcast.Sender[*runtimeapi.ContainerEventResponse] // another one after Down
	changes     []Change                                              // not passed to Observe yet
	telling     bool                                                  // a goroutine is calling Observe
	past        history
	images      images
	annotated   map[string]*fake.Behavior // by annotation value
	byIP        map[string]*sandbox

	behaviors repertoire // never changed
}

var (
	_ internalapi.RuntimeService      = (*Runtime)(nil)
	_ internalapi.ImageManagerService = (*Runtime)(nil)
)

// New returns an empty Runtime. It returns an error if cfg is invalid.
func New(cfg Config) (*Runtime, error) {
	if cfg.Name == "" {
		cfg.Name = "fakecri"
	}
	for _, h := range cfg.Handlers {
		if h == "" || h == defaultHandler {
			return nil, errors.New("fakecri: Config.Handlers names the default handler, which always exists")
		}
	}
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("fakecri: Config: %w", err)
	}
	if cfg.Listen && inBubble() {
		return nil, errors.New("fakecri: Config.Listen is set in a testing/synctest bubble; use Runtime.DialContext")
	}
	r := &Runtime{
		cfg:      cfg,
		log:      cfg.Logger,
		ids:      newIDs(cfg.Seed),
		calls:    map[string]int{},
		inflight: map[int]context.CancelCauseFunc{},
		pods:     map[string]*pod{},
		byIP:     map[string]*sandbox{},
		names:    map[string]string{},
		events:   new(broadcast.Sender[*runtimeapi.ContainerEventResponse]),

		behaviors: newRepertoire(cfg.Behaviors),
		images:    newImages(cfg.Images),
	}
	r.past.kept = cfg.Faults != nil
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	r.addPresentLocked()
	return r, nil
}

// Version returns the name of the runtime and the CRI version v1.
func (r *Runtime) Version(ctx context.Context, _ string) (*runtimeapi.VersionResponse, error) {
	return call(ctx, r, fake.Call{Method: "Version"}, func(context.Context) (*runtimeapi.VersionResponse, error) {
		return &runtimeapi.VersionResponse{
			Version: "0.1.0", RuntimeName: r.cfg.Name, RuntimeVersion: "1.0.0", RuntimeApiVersion: "v1",
		}, nil
	})
}

// defaultHandler is the other name of the handler "".
const defaultHandler = "runc"

// Status reports that the runtime and its network are ready.
func (r *Runtime) Status(ctx context.Context, verbose bool) (*runtimeapi.StatusResponse, error) {
	return call(ctx, r, fake.Call{Method: "Status"}, func(context.Context) (*runtimeapi.StatusResponse, error) {
		resp := &runtimeapi.StatusResponse{
			Status: &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
				{Type: runtimeapi.RuntimeReady, Status: true},
				{Type: runtimeapi.NetworkReady, Status: true},
			}},
			Features: &runtimeapi.RuntimeFeatures{SupplementalGroupsPolicy: true},
		}
		for _, name := range append([]string{"", defaultHandler}, r.cfg.Handlers...) {
			resp.RuntimeHandlers = append(resp.RuntimeHandlers, &runtimeapi.RuntimeHandler{
				Name:     name,
				Features: &runtimeapi.RuntimeHandlerFeatures{RecursiveReadOnlyMounts: true, UserNamespaces: true},
			})
		}
		if verbose {
			resp.Info = map[string]string{"config": infoOf(map[string]any{"name": r.cfg.Name, "seed": r.cfg.Seed})}
		}
		return resp, nil
	})
}

// RuntimeConfig returns the cgroup driver.
func (r *Runtime) RuntimeConfig(ctx context.Context) (*runtimeapi.RuntimeConfigResponse, error) {
	return call(ctx, r, fake.Call{Method: "RuntimeConfig"}, func(context.Context) (*runtimeapi.RuntimeConfigResponse, error) {
		return &runtimeapi.RuntimeConfigResponse{
			Linux: &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: runtimeapi.CgroupDriver_CGROUPFS},
		}, nil
	})
}

// UpdateRuntimeConfig does nothing: pod addresses are not from the pod CIDR.
func (r *Runtime) UpdateRuntimeConfig(ctx context.Context, _ *runtimeapi.RuntimeConfig) error {
	return act(ctx, r, fake.Call{Method: "UpdateRuntimeConfig"}, func(context.Context) error { return nil })
}

// Close does nothing.
func (r *Runtime) Close(context.Context) error { return nil }

// now returns the time in nanoseconds, as in the CRI.
func now() int64 { return time.Now().UnixNano() }
