package cri

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/distribution/reference"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// A puller sees that images are present (section 5). It pulls one at a time, as
// the kubelet does by default.
type puller struct {
	images internalapi.ImageManagerService

	turn chan struct{} // holds a token while nobody pulls

	// mu guards failures.
	mu       sync.Mutex
	failures map[pullKey]pullFailure
}

// A pullKey is what a pull's back-off is for (img-7).
type pullKey struct {
	uid   types.UID
	image string
}

// A pullFailure is the last failed pull, and how long it is not tried again.
type pullFailure struct {
	at    time.Time
	delay time.Duration
	err   error
}

const (
	pullBackoff    = 10 * time.Second
	pullBackoffMax = 300 * time.Second
	pullForget     = 600 * time.Second // after the last failure
)

func newPuller(images internalapi.ImageManagerService) *puller {
	p := &puller{images: images, turn: make(chan struct{}, 1), failures: map[pullKey]pullFailure{}}
	p.turn <- struct{}{}
	return p
}

// A startError is why a container could not be started, with the waiting reason
// that kubectl shows.
type startError struct {
	reason  string
	message string
	until   time.Time // when it may be tried again; zero: not known
	err     error
}

func (e *startError) Error() string { return e.message }
func (e *startError) Unwrap() error { return e.err }

// ensure sees that the image of container c is present as its pull policy says,
// and returns how the runtime names it and who it runs as. The error is a
// *startError.
func (s *step) ensure(ctx context.Context, c *v1.Container) (*runtimeapi.ImageSpec, imageUser, error) {
	p := s.r.images
	ref := runtime.ContainerRef(s.pod, c.Name)
	name, err := imageName(c.Image)
	if err != nil {
		// A runtime whose images are not those of registries may know it.
		as := &runtimeapi.ImageSpec{Image: c.Image, UserSpecifiedImage: c.Image, Annotations: s.pod.Annotations}
		if image, lookErr := p.lookUp(s.r.quiet(ctx), as); lookErr == nil && image != nil {
			return s.present(as, image)
		}
		message := fmt.Sprintf("Failed to apply default image tag %q: %v", c.Image, err)
		s.event(ref, v1.EventTypeWarning, "InspectFailed", message)
		return nil, imageUser{}, &startError{reason: "InvalidImageName", message: message, err: err}
	}
	spec := &runtimeapi.ImageSpec{Image: name, UserSpecifiedImage: c.Image, Annotations: s.pod.Annotations}
	if c.ImagePullPolicy != v1.PullAlways {
		image, err := p.lookUp(s.r.quiet(ctx), spec)
		switch {
		case err != nil:
			message := fmt.Sprintf("Failed to inspect image %q: %v", c.Image, words(err))
			s.event(ref, v1.EventTypeWarning, "InspectFailed", message)
			return nil, imageUser{}, &startError{reason: "ImageInspectError", message: message, err: err}
		case image != nil:
			s.event(ref, v1.EventTypeNormal, "Pulled", fmt.Sprintf("Container image %q already present on machine", c.Image))
			return s.present(spec, image)
		case c.ImagePullPolicy == v1.PullNever:
			message := fmt.Sprintf("Container image %q is not present with pull policy of Never", c.Image)
			s.event(ref, v1.EventTypeWarning, "ErrImageNeverPull", message)
			return nil, imageUser{}, &startError{reason: "ErrImageNeverPull", message: message, err: errors.New(message)}
		}
	}
	key := pullKey{s.pod.UID, name}
	if until, last := p.backingOff(key, time.Now()); !until.IsZero() {
		message := fmt.Sprintf("Back-off pulling image %q", c.Image)
		s.event(ref, v1.EventTypeNormal, "BackOff", message)
		return nil, imageUser{}, &startError{reason: "ImagePullBackOff", message: fmt.Sprintf("%s: %s", message, last), until: until, err: last}
	}
	s.event(ref, v1.EventTypeNormal, "Pulling", fmt.Sprintf("Pulling image %q", c.Image))
	pulled, err := p.pull(s.r.quiet(ctx), spec, s.config)
	if err != nil {
		if ctx.Err() != nil {
			return nil, imageUser{}, &startError{reason: "ErrImagePull", message: words(err), err: ctx.Err()}
		}
		reason, message := pullReason(c.Image, err)
		s.event(ref, v1.EventTypeWarning, "Failed", fmt.Sprintf("Failed to pull image %q: %v", c.Image, words(err)))
		until := p.failed(key, fmt.Errorf("%s: %s", reason, message), time.Now())
		return nil, imageUser{}, &startError{reason: reason, message: message, until: until, err: err}
	}
	p.succeeded(key, time.Now())
	image, err := p.lookUp(s.r.quiet(ctx), spec)
	if err != nil || image == nil {
		// Pulled, and gone or unreadable: the next sync looks again.
		return nil, imageUser{}, &startError{reason: "ImageInspectError", message: fmt.Sprintf("Failed to inspect image %q after its pull: %v", c.Image, err), err: errors.Join(err, ctx.Err())}
	}
	s.event(ref, v1.EventTypeNormal, "Pulled", fmt.Sprintf("Successfully pulled image %q in %v (%v including waiting). Image size: %v bytes.",
		c.Image, pulled.took.Truncate(time.Millisecond), (pulled.took+pulled.waited).Truncate(time.Millisecond), image.Size))
	return s.present(spec, image)
}

// present names the image by the ID it has now, so that a tag that moves
// between two calls does not mix two images.
func (s *step) present(spec *runtimeapi.ImageSpec, image *runtimeapi.Image) (*runtimeapi.ImageSpec, imageUser, error) {
	user := imageUser{Name: image.Username}
	if image.Uid != nil {
		user.UID = &image.Uid.Value
	}
	return &runtimeapi.ImageSpec{Image: image.Id, UserSpecifiedImage: spec.UserSpecifiedImage, Annotations: spec.Annotations}, user, nil
}

// lookUp returns the image, or nil if it is not present.
func (p *puller) lookUp(ctx context.Context, spec *runtimeapi.ImageSpec) (*runtimeapi.Image, error) {
	answer, err := p.images.ImageStatus(ctx, spec, false)
	if err != nil {
		return nil, err
	}
	if answer.GetImage().GetId() == "" {
		return nil, nil
	}
	return answer.Image, nil
}

// A pulled tells of a pull.
type pulled struct{ waited, took time.Duration }

// pull pulls the image in its turn, or gives up when ctx ends (lq-8).
func (p *puller) pull(ctx context.Context, spec *runtimeapi.ImageSpec, sandbox *runtimeapi.PodSandboxConfig) (pulled, error) {
	begun := time.Now()
	select {
	case <-p.turn:
	case <-ctx.Done():
		return pulled{}, ctx.Err()
	}
	defer func() { p.turn <- struct{}{} }()
	waited := time.Since(begun)
	_, err := p.images.PullImage(ctx, spec, nil, sandbox)
	return pulled{waited: waited, took: time.Since(begun) - waited}, err
}

// backingOff returns until when no pull is tried, and why; the zero time if one
// may be.
func (p *puller) backingOff(key pullKey, now time.Time) (time.Time, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, ok := p.failures[key]
	if until := f.at.Add(f.delay); ok && now.Before(until) {
		return until, f.err
	}
	return time.Time{}, nil
}

// failed notes a failed pull, and returns when the next may be tried (img-8).
func (p *puller) failed(key pullKey, err error, now time.Time) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	delay := pullBackoff
	if last, ok := p.failures[key]; ok && now.Sub(last.at) <= pullForget {
		delay = min(2*last.delay, pullBackoffMax)
	}
	p.failures[key] = pullFailure{at: now, delay: delay, err: err}
	return now.Add(delay)
}

// succeeded forgets the failures of key, and those that are long past (img-11).
func (p *puller) succeeded(key pullKey, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.failures, key)
	for k, f := range p.failures {
		if now.Sub(f.at) > pullForget {
			delete(p.failures, k)
		}
	}
}

// forget drops the failures of a pod that is gone.
func (p *puller) forget(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for k := range p.failures {
		if k.uid == uid {
			delete(p.failures, k)
		}
	}
}

// pullReason returns the waiting reason and message of a failed pull (img-9).
func pullReason(image string, err error) (reason, message string) {
	text := words(err)
	for _, r := range []struct{ reason, friendly string }{
		{"RegistryUnavailable", "image pull failed for " + image + " because the registry is unavailable"},
		{"SignatureValidationFailed", "image pull failed for " + image + " because the signature validation failed"},
	} {
		if rest, ok := strings.CutPrefix(text, r.reason); ok {
			message := r.friendly
			if rest = strings.TrimPrefix(rest, ": "); rest != "" {
				message += ": " + rest
			}
			return r.reason, message
		}
	}
	return "ErrImagePull", text
}

// imageName returns the image with the default tag if it has neither tag nor
// digest, and otherwise unchanged: no registry is put before it (img-1).
func imageName(image string) (string, error) {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return "", fmt.Errorf("couldn't parse image name %q: %w", image, err)
	}
	if reference.IsNameOnly(named) {
		return image + ":latest", nil
	}
	return image, nil
}
