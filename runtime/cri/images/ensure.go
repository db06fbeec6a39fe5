package images

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/internal/quiet"
)

// The reasons of an [Error], which a container shows while it waits.
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
	// Pod that the image is for. Required.
	Pod *v1.Pod

	// Image as the pod's spec names it.
	Image string

	// PullPolicy of the container or volume. Empty: PullIfNotPresent. The API
	// server, and what decodes static manifests, has put in the default, which
	// depends on the tag.
	PullPolicy v1.PullPolicy

	// Sandbox is handed to the runtime with a pull. Nil: the pod has none yet.
	Sandbox *runtimeapi.PodSandboxConfig

	// RuntimeHandler of the pod's RuntimeClass, for runtimes that keep images
	// by handler (the kubelet's RuntimeClassInImageCriApi). Empty: they need
	// not, and it is what a kubelet sends by default.
	RuntimeHandler string

	// Event takes the events that kubectl describe shows. It must not block.
	// EnsureAll calls those of its requests from several goroutines. Nil: nobody
	// reads them.
	Event func(eventType, reason, message string)
}

// An Image is one that is present.
type Image struct {
	// Spec names it to the runtime, by the ID that it has now, so that a tag
	// that moves does not mix two images.
	Spec *runtimeapi.ImageSpec

	ID   string
	Size uint64 // in bytes

	// UID and Username tell who the image runs as: a number, or else a name;
	// neither for root.
	UID      *int64
	Username string
}

// An Error says why a pod has not got an image.
type Error struct {
	Reason  string    // for the container's waiting state: ErrImagePull, …
	Message string    // goes with the reason
	Until   time.Time // it is not tried again before; zero: no such limit
	Err     error     // what the runtime, or the context, said
}

func (e *Error) Error() string { return e.Message }
func (e *Error) Unwrap() error { return e.Err }

// Ensure sees that an image is present, as its pull policy says, and that the
// pod may use it. The error is an *[Error]; that of a call which was called off
// unwraps to why ctx ended, and left no trace.
//
// The pulls of one image for several pods with the same credentials are one. It
// ends early when everybody who waits for it was called off.
func (m *Manager) Ensure(ctx context.Context, req Request) (Image, error) {
	if req.Pod == nil {
		return Image{}, &Error{Reason: ErrImagePull, Message: "images: Request.Pod is nil", Err: errors.New("images: Request.Pod is nil")}
	}
	if req.Event == nil {
		req.Event = func(string, string, string) {}
	}
	a := &ask{m: m, req: req, info: EnsureInfo{Request: req}}
	image, failed := a.ensure(quiet.Context(ctx, m.log))
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

// An ask is a Request that is being answered.
type ask struct {
	m    *Manager
	req  Request
	info EnsureInfo
	name string // of the image, with a tag
	spec *runtimeapi.ImageSpec

	looked  bool // for credentials
	creds   []Credential
	credErr error
}

func (a *ask) ensure(ctx context.Context) (Image, *Error) {
	name, err := withTag(a.req.Image)
	if a.name = name; err != nil {
		a.name = a.req.Image
	}
	a.spec = &runtimeapi.ImageSpec{
		Image: a.name, UserSpecifiedImage: a.req.Image,
		Annotations: a.req.Pod.Annotations, RuntimeHandler: a.req.RuntimeHandler,
	}
	if err != nil {
		return a.unparsable(ctx, err)
	}
	if a.req.PullPolicy != v1.PullAlways {
		image, done, failed := a.present(ctx)
		if done || failed != nil {
			return image, failed
		}
	}
	return a.pulled(ctx)
}

// unparsable answers for a name that no registry could have (img-1). A runtime
// whose images are not those of registries may know it.
func (a *ask) unparsable(ctx context.Context, err error) (Image, *Error) {
	if image, statusErr := a.m.imageStatus(ctx, a.spec); statusErr == nil && image != nil && a.mayUse(ctx, image) {
		return a.answer(image), nil
	}
	if ctx.Err() != nil {
		return Image{}, canceledError(ctx)
	}
	message := fmt.Sprintf("Failed to apply default image tag %q: %v", a.req.Image, err)
	a.req.Event(v1.EventTypeWarning, "InspectFailed", message)
	return Image{}, &Error{Reason: InvalidImageName, Message: message, Err: err}
}

// present answers if the image is there, or may not be pulled (img-2 … img-5).
func (a *ask) present(ctx context.Context) (image Image, done bool, failed *Error) {
	found, err := a.m.imageStatus(ctx, a.spec)
	if err != nil {
		if ctx.Err() != nil {
			return image, false, canceledError(ctx)
		}
		message := fmt.Sprintf("Failed to inspect image %q: %v", a.req.Image, errorText(err))
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
		return a.answer(found), true, nil
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

// pulled pulls the image, unless that failed a short time ago (img-7 … img-11).
func (a *ask) pulled(ctx context.Context) (Image, *Error) {
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
		// Pulled, and gone or unreadable: the next sync looks again.
		message := fmt.Sprintf("Failed to inspect image %q after its pull: %v", a.req.Image, errorText(got.err))
		a.req.Event(v1.EventTypeWarning, "InspectFailed", message)
		return Image{}, &Error{Reason: ImageInspectError, Message: message, Err: got.err}
	case got.err != nil:
		return Image{}, a.failed(ctx, key, got.err)
	}
	if m.records != nil {
		if err := m.records.add(a.name, got.image.Id, got.with(creds), false); err != nil {
			m.log.Warn("shared pull is not recorded", "image", a.name, "err", err)
		}
	}
	m.backoff.forget(func(k backoffKey) bool { return k == key })
	a.req.Event(v1.EventTypeNormal, "Pulled", fmt.Sprintf("Successfully pulled image %q in %v (%v including waiting). Image size: %v bytes.",
		a.req.Image, got.took.Truncate(time.Millisecond), max(time.Since(begun), got.took).Truncate(time.Millisecond), got.image.Size))
	return a.answer(got.image), nil
}

// failed tells of a failed pull, and begins or prolongs the back-off.
func (a *ask) failed(ctx context.Context, key backoffKey, err error) *Error {
	text := errorText(err)
	reason, message := pullReason(a.req.Image, text)
	if a.credErr != nil {
		also := fmt.Sprintf(" (and credentials could not be looked up: %v)", a.credErr)
		text, message = text+also, message+also
	}
	a.req.Event(v1.EventTypeWarning, "Failed", fmt.Sprintf("Failed to pull image %q: %s", a.req.Image, text))
	failed := &Error{Reason: reason, Message: message, Err: err}
	failed.Until = a.m.backoff.failed(key, a.identity(ctx), &Error{Reason: reason, Message: message, Err: err}, time.Now())
	return failed
}

// mayUse reports whether the pod may use an image that is there (img-5).
func (a *ask) mayUse(ctx context.Context, found *runtimeapi.Image) bool {
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
	if record.open(repo) {
		return true
	}
	known, add := record.knows(repo, a.credentials(ctx))
	if add != nil {
		if err := r.add(a.name, found.Id, add, false); err != nil {
			a.m.log.Warn("changed pull secret is not recorded", "image", a.name, "err", err)
		}
	}
	return known
}

// settle finds out what became of pulls of which nobody knows how they ended.
func (m *Manager) settle(ctx context.Context) {
	for _, image := range m.records.unsettled() {
		found, err := m.imageStatus(ctx, &runtimeapi.ImageSpec{Image: image})
		if err == nil {
			err = m.records.settle(image, found.GetId(), time.Now())
		}
		if err != nil && ctx.Err() == nil {
			m.log.Warn("it is not known how a pull ended", "image", image, "err", err)
		}
	}
}

// credentials looks them up, once.
func (a *ask) credentials(ctx context.Context) []Credential {
	if a.looked || a.m.cfg.Credentials == nil {
		return a.creds
	}
	a.looked = true
	a.creds, a.credErr = a.m.cfg.Credentials.Lookup(ctx, a.name, a.req.Pod)
	if a.credErr != nil && ctx.Err() == nil {
		a.m.log.Warn("credentials could not be looked up", "pod", a.req.Pod.Namespace+"/"+a.req.Pod.Name, "uid", a.req.Pod.UID, "image", a.name, "err", a.credErr)
	}
	return a.creds
}

// changed reports whether the pod has other credentials than at its last
// failure. If they could not all be looked up, nobody knows.
func (a *ask) changed(ctx context.Context, last failure) bool {
	now := a.identity(ctx)
	return a.credErr == nil && now != last.with
}

// identity tells whose credentials a back-off is for (lq-17).
func (a *ask) identity(ctx context.Context) string {
	return identity(a.credentials(ctx))
}

// answer names the image by the ID that it has now.
func (a *ask) answer(found *runtimeapi.Image) Image {
	image := Image{
		ID: found.Id, Size: found.Size, Username: found.Username,
		Spec: &runtimeapi.ImageSpec{
			Image: found.Id, UserSpecifiedImage: a.spec.UserSpecifiedImage,
			Annotations: a.spec.Annotations, RuntimeHandler: a.spec.RuntimeHandler,
		},
	}
	if found.Uid != nil {
		image.UID = &found.Uid.Value
	}
	return image
}

// lookUp returns the image, or nil if it is not present.
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
