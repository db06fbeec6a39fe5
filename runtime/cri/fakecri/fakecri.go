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
)

// Config says what a [Runtime] is like. The zero value is a runtime on which
// everything works, containers run until they are stopped, and every image can
// be pulled at once.
type Config struct {
	// Name is what the runtime calls itself, and the scheme of container IDs in
	// pod statuses. Empty: "fakecri".
	Name string

	// Behaviours say what containers do.
	Behaviours Behaviours

	// Images say what images are like, by the names that pods use. One without
	// tag and digest is every tag that is not named itself, and "*" is every
	// image that is not named; those of which nothing is said can be pulled, and
	// are as the zero ImageBehaviour.
	Images map[string]ImageBehaviour

	// Handlers are the runtime handlers that there are, besides the default one,
	// which has the names "" and "runc".
	Handlers []string

	// Faults is asked for the fault of each call, and may be called by many
	// goroutines at once. Nil: none. [Always], [Every], [Random] and the like
	// make such functions.
	Faults func(Call) Fault

	// Observe is told every change of a sandbox or container: one at a time, in
	// order, at the instant of the change. No lock is held: it may call the
	// Runtime. While one goroutine is in it, others leave their changes to that
	// one and go on; so if it waits, what is told next is told late. Nil: nobody
	// is told.
	Observe func(Change)

	// Seed is what IDs are made from: the same calls in the same order give the
	// same ones.
	Seed uint64

	// WriteLogs: what containers print is written to the files of their logs, as
	// LogDirectory of the sandbox and LogPath of the container say, at the times
	// at which it is printed.
	WriteLogs bool

	// Listen: endpoints of containers really listen on 127.0.0.1, and
	// Runtime.Endpoint tells where. It cannot be in a testing/synctest bubble,
	// whose time would stand still for as long as somebody listens; what is in
	// one reaches endpoints with Runtime.DialContext, which needs no Listen.
	Listen bool

	// Logger is told of what cannot be told otherwise, such as a log file that
	// cannot be written, and must not call the Runtime. Nil: it is lost.
	Logger *slog.Logger
}

// A Runtime is a runtime of the CRI in memory. All its methods may be called by
// many goroutines at once. It has no goroutine while nothing happens (unless it
// listens), and needs no end.
//
// The messages that it returns may be shared by many answers: they are to be
// read only.
type Runtime struct {
	cfg Config
	log *slog.Logger

	mu          sync.Mutex // guards what follows; nobody waits or calls out with it
	ids         *rand.ChaCha8
	down        bool
	calls       map[string]int                  // of each method, since New
	inflight    map[int]context.CancelCauseFunc // the calls under way
	entered     int                             // calls let in since New
	starts      int                             // of containers that were begun since New
	pods        map[string]*pod                 // by UID
	names       map[string]string               // of sandboxes and containers, to the IDs that have them
	sandboxes   chain[*sandbox]
	containers  chain[*container]
	lastIP      uint32
	mislabelled int // how much there is whose label of its pod's UID is not that
	watchers    map[*watcher]struct{}
	changes     []Change // not told yet
	telling     bool     // somebody is at it
	past        history
	images      images
	annotated   map[string]*Behaviour // by what annotations say
	byIP        map[string]*sandbox

	behaviours repertoire // never changed
}

var (
	_ internalapi.RuntimeService      = (*Runtime)(nil)
	_ internalapi.ImageManagerService = (*Runtime)(nil)
)

// New returns a Runtime that holds nothing.
func New(cfg Config) (*Runtime, error) {
	if cfg.Name == "" {
		cfg.Name = "fakecri"
	}
	for _, h := range cfg.Handlers {
		if h == "" || h == defaultHandler {
			return nil, errors.New("fakecri: Config.Handlers names the default handler, which is there anyway")
		}
	}
	if err := cfg.check(); err != nil {
		return nil, fmt.Errorf("fakecri: Config: %w", err)
	}
	if cfg.Listen && inBubble() {
		return nil, errors.New("fakecri: Config.Listen in a testing/synctest bubble, where Runtime.DialContext has to do")
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
		watchers: map[*watcher]struct{}{},

		behaviours: newRepertoire(cfg.Behaviours),
		images:     newImages(cfg.Images),
	}
	r.past.kept = cfg.Faults != nil
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	r.addPresentLocked()
	return r, nil
}

// Version tells the name of the runtime, and version v1 of the CRI.
func (r *Runtime) Version(ctx context.Context, _ string) (*runtimeapi.VersionResponse, error) {
	return call(ctx, r, Call{Method: "Version"}, func(context.Context) (*runtimeapi.VersionResponse, error) {
		return &runtimeapi.VersionResponse{
			Version: "0.1.0", RuntimeName: r.cfg.Name, RuntimeVersion: "1.0.0", RuntimeApiVersion: "v1",
		}, nil
	})
}

// defaultHandler is the other name of the handler "".
const defaultHandler = "runc"

// Status is that the runtime and its network are ready.
func (r *Runtime) Status(ctx context.Context, verbose bool) (*runtimeapi.StatusResponse, error) {
	return call(ctx, r, Call{Method: "Status"}, func(context.Context) (*runtimeapi.StatusResponse, error) {
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

// RuntimeConfig tells the driver of cgroups.
func (r *Runtime) RuntimeConfig(ctx context.Context) (*runtimeapi.RuntimeConfigResponse, error) {
	return call(ctx, r, Call{Method: "RuntimeConfig"}, func(context.Context) (*runtimeapi.RuntimeConfigResponse, error) {
		return &runtimeapi.RuntimeConfigResponse{
			Linux: &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: runtimeapi.CgroupDriver_CGROUPFS},
		}, nil
	})
}

// UpdateRuntimeConfig does nothing: addresses of pods are not of a pod CIDR.
func (r *Runtime) UpdateRuntimeConfig(ctx context.Context, _ *runtimeapi.RuntimeConfig) error {
	return act(ctx, r, Call{Method: "UpdateRuntimeConfig"}, func(context.Context) error { return nil })
}

// Close does nothing: it ends a client's connection, of which there is none.
func (r *Runtime) Close(context.Context) error { return nil }

// now is the time of what happens, in nanoseconds as the CRI has it.
func now() int64 { return time.Now().UnixNano() }
