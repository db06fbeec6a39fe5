package images

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/logs"
)

// The reasons of an [Error], for a container's waiting state.
const (
	InvalidImageName          = "InvalidImageName"
	ImageInspectError         = "ImageInspectError"
	ErrImageNeverPull         = "ErrImageNeverPull"
	ErrImagePull              = "ErrImagePull"
	ImagePullBackOff          = "ImagePullBackOff"
	RegistryUnavailable       = "RegistryUnavailable"
	SignatureValidationFailed = "SignatureValidationFailed"
)

// A Request asks for one image.
type Request struct {
	// Pod is the pod that uses the image. Required.
	Pod *v1.Pod

	// Image is the image reference in the pod's spec.
	Image string

	// PullPolicy is the pull policy of the container or volume. Empty means
	// PullIfNotPresent; the default that depends on the tag is set by the API server and
	// by package podsource/manifest.
	PullPolicy v1.PullPolicy

	// Sandbox is passed to the runtime with a pull. Nil if the pod has no sandbox yet.
	Sandbox *runtimeapi.PodSandboxConfig

	// RuntimeHandler is the handler of the pod's RuntimeClass, for runtimes that store
	// images by handler (the kubelet's RuntimeClassInImageCriApi). The kubelet sends none
	// by default.
	RuntimeHandler string

	// Event records an event of the pod. It must not block. EnsureAll calls it
	// concurrently. If nil, events are discarded.
	Event func(eventType, reason, message string)
}

// An Image is an image that is present on the node.
type Image struct {
	// Spec references the image by its ID, which does not change if the tag moves. Only this
	// one, for the creation of containers, has the reference of the pod's spec as well.
	Spec *runtimeapi.ImageSpec

	ID   string
	Size uint64 // in bytes

	// UID or Username is the user that the image specifies. If both are zero, it is
	// root.
	UID      *int64
	Username string
}

// An Error is the error of a request for an image.
type Error struct {
	Reason  string    // one of the constants, for the container's waiting state
	Message string    // for the container's waiting state
	Until   time.Time // end of the back-off; zero if there is none
	Err     error     // the error of the runtime or context
}

func (e *Error) Error() string { return e.Message }
func (e *Error) Unwrap() error { return e.Err }

// Ensure makes an image available to a pod: it pulls the image if the pull policy requires
// it, or if the pod may not use the present one. It blocks until then. The error is an
// *[Error]. If ctx is done first, the error unwraps to ctx.Err(), and no event is recorded and
// no back-off begins.
//
// Concurrent calls for one image with the same credentials share a pull, which is canceled
// when the contexts of all of them are done.
func (m *Manager) Ensure(ctx context.Context, req Request) (Image, error) {
	if req.Pod == nil {
		return Image{}, &Error{Reason: ErrImagePull, Message: "images: Request.Pod is nil", Err: errors.New("images: Request.Pod is nil")}
	}
	if req.Event == nil {
		req.Event = func(string, string, string) {}
	}
	a := &ensureCall{m: m, req: req, info: EnsureInfo{Request: req}}
	image, failed := a.ensure(logs.Context(ctx, m.log))
	var err error
	if failed != nil {
		err = failed
	}
	if m.cfg.Hooks.Ensured != nil {
		a.info.Err = err
		m.cfg.Hooks.Ensured(a.info)
	}
	return image, err
}

// An ensureCall is the state of one call of Ensure.
type ensureCall struct {
	m    *Manager
	req  Request
	info EnsureInfo
	name string // of the image, with tag or digest
	spec *runtimeapi.ImageSpec

	lookedUp bool // whether creds and credErr are set
	creds    []Credential
	credErr  error
}

func (a *ensureCall) ensure(ctx context.Context) (Image, *Error) {
	name, err := withTag(a.req.Image)
	if a.name = name; err != nil {
		a.name = a.req.Image
	}
	a.spec = &runtimeapi.ImageSpec{Image: a.name, Annotations: a.req.Pod.Annotations, RuntimeHandler: a.req.RuntimeHandler}
	if err != nil {
		return a.ensureUnparsable(ctx, err)
	}
	if a.req.PullPolicy != v1.PullAlways || a.m.withoutImages() {
		image, done, failed := a.usePresent(ctx)
		if done || failed != nil {
			return image, failed
		}
	}
	return a.pull(ctx)
}

// withoutImages reports whether every image is present.
func (m *Manager) withoutImages() bool {
	_, without := compose.As[WithoutImages](m.cfg.Service)
	return without
}

// ensureUnparsable handles a reference that is invalid in registries. The runtime may have an
// image of that name from another source.
func (a *ensureCall) ensureUnparsable(ctx context.Context, err error) (Image, *Error) {
	if image, statusErr := a.m.imageStatus(ctx, a.spec); statusErr == nil && image != nil && a.mayUse(ctx, image) {
		return a.newImage(image), nil
	}
	if ctx.Err() != nil {
		return Image{}, canceledError(ctx)
	}
	message := fmt.Sprintf("Failed to apply default image tag %q: %v", a.req.Image, err)
	a.req.Event(v1.EventTypeWarning, "InspectFailed", message)
	return Image{}, &Error{Reason: InvalidImageName, Message: message, Err: err}
}

// usePresent returns the image if it is present and the pod may use it. done is false if it
// must be pulled.
func (a *ensureCall) usePresent(ctx context.Context) (image Image, done bool, failed *Error) {
	found, err := a.m.imageStatus(ctx, a.spec)
	if err != nil {
		if ctx.Err() != nil {
			return image, false, canceledError(ctx)
		}
		message := fmt.Sprintf("Failed to inspect image %q: %v", a.req.Image, err)
		a.req.Event(v1.EventTypeWarning, "InspectFailed", message)
		return image, false, &Error{Reason: ImageInspectError, Message: message, Err: err}
	}
	a.info.Present = found != nil
	if found != nil && a.mayUse(ctx, found) {
		message := fmt.Sprintf("Container image %q already present on machine", a.req.Image)
		if a.m.records != nil {
			message += " and can be accessed by the pod"
		}
		a.req.Event(v1.EventTypeNormal, "Pulled", message)
		return a.newImage(found), true, nil
	}
	if ctx.Err() != nil {
		return image, false, canceledError(ctx)
	}
	if a.req.PullPolicy == v1.PullNever {
		message := fmt.Sprintf("Container image %q is not present with pull policy of Never", a.req.Image)
		a.req.Event(v1.EventTypeWarning, ErrImageNeverPull, message)
		return image, false, &Error{Reason: ErrImageNeverPull, Message: message, Err: errors.New(message)}
	}
	return image, false, nil
}

// pull pulls the image unless it is in back-off.
func (a *ensureCall) pull(ctx context.Context) (Image, *Error) {
	m, key := a.m, backoffKey{a.req.Pod.UID, a.name}
	if last, ok := m.backoff.last(key, time.Now()); ok && time.Now().Before(last.until()) && !a.changed(ctx, last) {
		message := fmt.Sprintf("Back-off pulling image %q", a.req.Image)
		a.req.Event(v1.EventTypeNormal, "BackOff", message)
		return Image{}, &Error{
			Reason: ImagePullBackOff, Until: last.until(), Err: last.err,
			Message: fmt.Sprintf("%s: %s: %s", message, last.err.Reason, last.err.Message),
		}
	}
	creds := a.credentials(ctx)
	if ctx.Err() != nil {
		return Image{}, canceledError(ctx)
	}
	a.req.Event(v1.EventTypeNormal, "Pulling", fmt.Sprintf("Pulling image %q", a.req.Image))
	a.info.Pulled = true
	begun := time.Now()
	got, err := m.share(ctx, pullRequest{
		pod: a.req.Pod, image: a.req.Image, spec: a.spec, creds: creds, sandbox: a.req.Sandbox,
	})
	switch {
	case ctx.Err() != nil && (err != nil || got.err != nil):
		return Image{}, canceledError(ctx)
	case got.err != nil && got.missing:
		// No back-off: the next sync inspects the image again.
		message := fmt.Sprintf("Failed to inspect image %q after its pull: %v", a.req.Image, errorText(got.err))
		a.req.Event(v1.EventTypeWarning, "InspectFailed", message)
		return Image{}, &Error{Reason: ImageInspectError, Message: message, Err: got.err}
	case got.err != nil:
		return Image{}, a.failed(ctx, key, got.err)
	}
	if m.records != nil {
		if err := m.records.add(a.name, got.image.Id, got.with(creds), false); err != nil {
			m.log.Warn("Failed to record credentials of a shared pull, the pod must present them again", "image", a.name, "err", err)
		}
	}
	m.backoff.forget(func(k backoffKey) bool { return k == key })
	a.req.Event(v1.EventTypeNormal, "Pulled", fmt.Sprintf("Successfully pulled image %q in %v (%v including waiting). Image size: %v bytes.",
		a.req.Image, got.took.Truncate(time.Millisecond), max(time.Since(begun), got.took).Truncate(time.Millisecond), got.image.Size))
	return a.newImage(got.image), nil
}

// failed records the event of a failed pull and begins or extends the back-off.
func (a *ensureCall) failed(ctx context.Context, key backoffKey, err error) *Error {
	text := errorText(err)
	reason, message := pullReason(a.req.Image, text)
	if a.credErr != nil {
		lookup := fmt.Sprintf(" (and credentials could not be looked up: %v)", a.credErr)
		text, message = text+lookup, message+lookup
	}
	a.req.Event(v1.EventTypeWarning, "Failed", fmt.Sprintf("Failed to pull image %q: %s", a.req.Image, text))
	failed := &Error{Reason: reason, Message: message, Err: err}
	failed.Until = a.m.backoff.failed(key, a.identity(ctx), &Error{Reason: reason, Message: message, Err: err}, time.Now())
	return failed
}

// mayUse reports whether the pod may use a present image without a pull.
func (a *ensureCall) mayUse(ctx context.Context, found *runtimeapi.Image) bool {
	r := a.m.records
	if r == nil || a.m.cfg.Verify == NeverVerify {
		return true
	}
	a.m.settle(ctx)
	record := r.get(found.Id)
	if !a.m.verify.required(a.name, record != nil || r.pulling(a.name)) {
		return true
	}
	if record == nil {
		return false
	}
	repo := repository(a.name)
	if record.isPublic(repo) {
		return true
	}
	matches, add := record.matches(repo, a.credentials(ctx))
	if add != nil {
		if err := r.add(a.name, found.Id, add, false); err != nil {
			a.m.log.Warn("Failed to record changed pull secret", "image", a.name, "err", err)
		}
	}
	return matches
}

// settle determines the outcome of pulls whose result was lost.
func (m *Manager) settle(ctx context.Context) {
	for _, image := range m.records.unsettled() {
		found, err := m.imageStatus(ctx, &runtimeapi.ImageSpec{Image: image})
		if err == nil {
			err = m.records.settle(image, found.GetId(), time.Now())
		}
		if err != nil && ctx.Err() == nil {
			m.log.Warn("Failed to determine the outcome of an image pull, will retry", "image", image, "err", err)
		}
	}
}

// credentials returns the pod's credentials. They are looked up once.
func (a *ensureCall) credentials(ctx context.Context) []Credential {
	if a.lookedUp || a.m.cfg.Credentials == nil {
		return a.creds
	}
	a.lookedUp = true
	a.creds, a.credErr = a.m.cfg.Credentials.Lookup(ctx, a.name, a.req.Pod)
	if a.credErr != nil && ctx.Err() == nil {
		a.m.log.Warn("Failed to look up image pull credentials", "pod", a.req.Pod.Namespace+"/"+a.req.Pod.Name, "podUID", a.req.Pod.UID, "image", a.name, "err", a.credErr)
	}
	return a.creds
}

// changed reports whether the pod's credentials changed since the last failure. It returns
// false if they could not all be looked up.
func (a *ensureCall) changed(ctx context.Context, last failure) bool {
	now := a.identity(ctx)
	return a.credErr == nil && now != last.with
}

// identity returns the identity of the pod's credentials.
func (a *ensureCall) identity(ctx context.Context) string {
	return identity(a.credentials(ctx))
}

// newImage returns an Image that is referenced by ID.
func (a *ensureCall) newImage(found *runtimeapi.Image) Image {
	image := Image{
		ID: found.Id, Size: found.Size, Username: found.Username,
		Spec: &runtimeapi.ImageSpec{
			Image: found.Id, UserSpecifiedImage: a.req.Image,
			Annotations: a.spec.Annotations, RuntimeHandler: a.spec.RuntimeHandler,
		},
	}
	if found.Uid != nil {
		image.UID = &found.Uid.Value
	}
	return image
}

// imageStatus returns the image, nil if it is not present.
func (m *Manager) imageStatus(ctx context.Context, spec *runtimeapi.ImageSpec) (*runtimeapi.Image, error) {
	answer, err := m.cfg.Service.ImageStatus(ctx, spec, false)
	if err != nil {
		return nil, err
	}
	if answer.GetImage().GetId() == "" {
		return nil, nil
	}
	return answer.Image, nil
}
