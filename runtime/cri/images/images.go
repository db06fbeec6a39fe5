package images

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	v1 "k8s.io/api/core/v1"
	internalapi "k8s.io/cri-api/pkg/apis"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/internal/singleflight"
)

// Unlimited is the value of Config.MaxParallel for any number of concurrent pulls.
const Unlimited = -1

// WithoutImages is an optional interface of Config.Service. Of a service that implements it,
// every name is present, as of package runtime/process; the pull policy Always is then
// IfNotPresent, since a pull would do nothing.
type WithoutImages interface {
	// WithoutImages is not called.
	WithoutImages()
}

// Config configures a [Manager].
type Config struct {
	// Service is the image service of a CRI runtime. Required. It must be safe for
	// concurrent use, and its PullImage must return soon after its context is done, because
	// it counts towards MaxParallel until then. It may implement [WithoutImages].
	Service internalapi.ImageManagerService

	// Credentials supplies pull credentials. If nil, all pulls are anonymous.
	Credentials Credentials

	// MaxParallel is the maximum number of concurrent pulls. Zero and 1 mean one pull at a
	// time, in the order of the requests, as the kubelet does by default; Unlimited means
	// no limit, as in a kubelet with serializeImagePulls: false.
	MaxParallel int

	// QPS is the maximum number of pulls that begin per second after a burst of Burst.
	// Each attempt with a credential counts. Zero means 5; a negative value disables the
	// limit. Pulls above the limit wait.
	QPS float64

	// Burst is the number of pulls that may begin at the same time. Zero means 10.
	Burst int

	// Backoff configures the back-off after failed pulls.
	Backoff Backoff

	// Dir is the directory of the records of pulls, which determine the pods that may use
	// an image. It has the kubelet's format (KEP-2535), so that an agent can replace a
	// kubelet and the reverse; the kubelet's directory is /var/lib/kubelet/image_manager.
	// It is created by the first pull. If empty, no records are stored, and all pods may
	// use all present images, as in the kubelet before 1.35.
	Dir string

	// Verify selects the present images that a pod must pull again if it has not presented
	// credentials for them. Empty means NeverVerifyPreloadedImages, as in the kubelet, if
	// Dir is set, else NeverVerify.
	Verify VerifyPolicy

	// VerifyAllowlist are the repositories of NeverVerifyAllowlistedImages, without tag or
	// digest: "registry.example/org/app", or "registry.example/org/*" for all in a path.
	VerifyAllowlist []string

	// RefuseOverQPS fails a pull that exceeds QPS with "pull QPS exceeded", and backs
	// off, as the kubelet does. If false, the pull waits.
	RefuseOverQPS bool

	// Logger receives log messages. If nil, they are discarded.
	Logger *slog.Logger

	// Hooks observe pulls and requests.
	Hooks Hooks
}

// Hooks are called synchronously and must not block. They are called concurrently. Any may be
// nil.
type Hooks struct {
	// Waiting is called when a pull must wait because of Config.MaxParallel.
	Waiting func(WaitInfo)

	// Pulled is called once after each pull, whether it succeeded or failed and however
	// many pods share it.
	Pulled func(PullInfo)

	// Ensured is called after each request, also those of EnsureAll and EnsureVolumes.
	Ensured func(EnsureInfo)
}

// Join returns Hooks that call the functions of h and then those of others, in order.
func (h Hooks) Join(others ...Hooks) Hooks {
	for _, o := range others {
		compose.Add(&h.Waiting, o.Waiting)
		compose.Add(&h.Pulled, o.Pulled)
		compose.Add(&h.Ensured, o.Ensured)
	}
	return h
}

// A WaitInfo describes a pull that waits for others.
type WaitInfo struct {
	Image string
	Pod   *v1.Pod // of the request that began the pull
}

// A PullInfo describes a completed pull.
type PullInfo struct {
	Image  string
	Pod    *v1.Pod       // of the request that began the pull
	Waited time.Duration // because of MaxParallel and QPS
	Took   time.Duration // without Waited
	Size   uint64        // of the image in bytes; zero if the pull failed
	Err    error
}

// An EnsureInfo describes a completed request.
type EnsureInfo struct {
	Request Request
	Present bool // the image was present; not inspected for PullAlways
	Pulled  bool // the image was pulled for this request or a concurrent one
	Err     error
}

// A Manager makes the images of pods available. Safe for concurrent use.
type Manager struct {
	cfg     Config
	log     *slog.Logger
	verify  verifier
	records *records // nil if none are stored
	backoff *backoffs
	limit   *limiter
	turns   chan struct{} // holds a token per pull; nil if unlimited
	pulls   singleflight.Group[pullResult]
}

// New returns a Manager for cfg. It returns an error if cfg is invalid. It makes no calls and
// accesses no files.
func New(cfg Config) (*Manager, error) {
	if cfg.Service == nil {
		return nil, errors.New("images: Config.Service is nil")
	}
	if err := compose.Check(cfg.Service, reflect.TypeFor[WithoutImages]()); err != nil {
		return nil, fmt.Errorf("images: Config.Service: %w", err)
	}
	if cfg.MaxParallel < Unlimited {
		return nil, fmt.Errorf("images: Config.MaxParallel is %d: must be at least 0, or Unlimited", cfg.MaxParallel)
	}
	if cfg.Burst < 0 {
		return nil, fmt.Errorf("images: Config.Burst is %d", cfg.Burst)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Verify == "" {
		cfg.Verify = NeverVerifyPreloadedImages
		if cfg.Dir == "" {
			cfg.Verify = NeverVerify
		}
	}
	if cfg.Dir == "" && cfg.Verify != NeverVerify {
		return nil, fmt.Errorf("images: Config.Verify is %s, which requires Config.Dir", cfg.Verify)
	}
	verify, err := newVerifier(cfg.Verify, cfg.VerifyAllowlist)
	if err != nil {
		return nil, err
	}
	backoff, err := newBackoffs(cfg.Backoff)
	if err != nil {
		return nil, err
	}
	m := &Manager{
		cfg: cfg, log: cfg.Logger, verify: verify, backoff: backoff,
		limit: newLimiter(cfg.QPS, cfg.Burst, cfg.RefuseOverQPS),
	}
	if cfg.Dir != "" {
		m.records = newRecords(cfg.Dir, cfg.Logger)
	}
	if cfg.MaxParallel != Unlimited {
		m.turns = make(chan struct{}, max(cfg.MaxParallel, 1))
	}
	return m, nil
}
