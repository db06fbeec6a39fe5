package images

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"
	internalapi "k8s.io/cri-api/pkg/apis"

	"github.com/kubeparts/kubeparts/internal/singleflight"
)

// Unlimited, as Config.MaxParallel, lets any number of pulls run at once.
const Unlimited = -1

// Config configures a [Manager].
type Config struct {
	// Service is the image service of a CRI runtime. Required. It is called
	// from many goroutines; its PullImage must return soon after its context
	// ended, or the pull keeps its turn.
	Service internalapi.ImageManagerService

	// Credentials finds what images are pulled with. Nil: every pull is
	// anonymous.
	Credentials Credentials

	// MaxParallel is how many images are pulled at once (img-13). 0 and 1: one
	// after the other, in the order asked for, as the kubelet does by default.
	// Unlimited: no bound, as a kubelet with serializeImagePulls false.
	MaxParallel int

	// QPS is how many pulls a second may be begun, each try of a credential
	// counted, once Burst of them were begun at once. 0: 5; negative: no
	// limit. What is over the limit waits.
	QPS float64

	// Burst belongs to QPS. 0: 10.
	Burst int

	// Backoff after failed pulls.
	Backoff Backoff

	// Dir holds the records of pulls, in directories pulling and pulled and in
	// the kubelet's format (KEP-2535), so that an agent that takes a node over
	// from a kubelet, or hands it back, knows who may use which image. The
	// kubelet's is /var/lib/kubelet/image_manager. It is made at the first
	// pull. Empty: no records are kept, and who may use an image that is there
	// is not asked, as the kubelet did before 1.35.
	Dir string

	// Verify says which images that are there have to be pulled anew by a pod
	// that has not shown its credentials yet (img-5). Empty:
	// NeverVerifyPreloadedImages if there is a Dir, as the kubelet, or else
	// NeverVerify.
	Verify VerifyPolicy

	// VerifyAllowlist belongs to NeverVerifyAllowlistedImages: repositories
	// without tag or digest, such as "registry.example/org/app", or all below a
	// path, such as "registry.example/org/*".
	VerifyAllowlist []string

	// RefuseOverQPS fails a pull that exceeds QPS with "pull QPS exceeded", and backs
	// off, as the kubelet does. If false, the pull waits.
	RefuseOverQPS bool

	// Logger, nil discards.
	Logger *slog.Logger

	// Hooks observe; see there.
	Hooks Hooks
}

// Hooks are called as things happen, on the goroutine they happen on; they must
// not block. Any may be nil.
type Hooks struct {
	// Waiting is called when a pull has to wait for its turn.
	Waiting func(WaitInfo)

	// Pulled is called after each pull, also one that failed. A pull that many
	// pods share is one.
	Pulled func(PullInfo)

	// Ensured is called after each call of Ensure, also those that EnsureAll
	// and EnsureVolumes make.
	Ensured func(EnsureInfo)
}

// A WaitInfo tells of a pull that waits for others.
type WaitInfo struct {
	Image string
	Pod   *v1.Pod // whose request began it
}

// A PullInfo tells of a pull that has ended.
type PullInfo struct {
	Image  string
	Pod    *v1.Pod       // whose request began it
	Waited time.Duration // for its turn and for the limit of QPS
	Took   time.Duration // after that
	Size   uint64        // of the image in bytes; 0 if the pull failed
	Err    error
}

// An EnsureInfo tells of an image that was asked for.
type EnsureInfo struct {
	Request Request
	Present bool // it was there already; not looked at for PullAlways
	Pulled  bool // a pull was made, or shared
	Err     error
}

// A Manager sees that the images of pods are present. Its methods may be called
// from many goroutines.
type Manager struct {
	cfg     Config
	log     *slog.Logger
	verify  verifier
	records *records // nil: none are kept
	backoff *backoffs
	limit   *limiter
	turns   chan struct{} // holds a token per pull under way; nil: no bound
	pulls   singleflight.Group[pullResult]
}

// New returns a Manager for cfg, or an error if it lacks something. It calls
// nothing and touches no file.
func New(cfg Config) (*Manager, error) {
	if cfg.Service == nil {
		return nil, errors.New("images: Config.Service is nil")
	}
	if cfg.MaxParallel < Unlimited {
		return nil, fmt.Errorf("images: Config.MaxParallel is %d: use a number of pulls, or Unlimited", cfg.MaxParallel)
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
		return nil, fmt.Errorf("images: Config.Verify is %s, but there is no Config.Dir for the records that it needs", cfg.Verify)
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
