package fakecri

import (
	"context"
	"encoding/base64"
	"time"

	"github.com/distribution/reference"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/fake"
)

// A pull is a pull in progress, shared by all callers that pull the image.
type pull struct {
	ends    time.Time
	waiting int
	over    bool
	id      string // of the image, or else
	err     error  // what came of it
}

// PullImage adds an image to the node and returns its ID. It takes PullTime, unless the
// image is present. Concurrent pulls of an image are one, which is canceled only if all
// of them are.
func (r *Runtime) PullImage(ctx context.Context, spec *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, sandbox *runtimeapi.PodSandboxConfig) (string, error) {
	c := fake.Call{Method: "PullImage", Pod: types.UID(sandbox.GetMetadata().GetUid()), Image: spec.GetImage()}
	return call(ctx, r, c, func(ctx context.Context) (string, error) {
		named, err := parseImage(spec.GetImage())
		if err != nil {
			return "", refused("pull image: name %q: %v", spec.GetImage(), err)
		}
		p, err := r.beginPull(ctx, named, auth)
		if err != nil {
			return "", err
		}
		err = wait(ctx, time.Until(p.ends))
		r.mu.Lock()
		defer r.unlock()
		p.waiting--
		switch {
		case err == nil && !p.over:
			r.endPullLocked(p, named)
		case p.waiting == 0 && !p.over:
			r.dropPullLocked(p, named)
		}
		if err != nil {
			return "", err
		}
		return p.id, p.err
	})
}

// beginPull joins or starts the pull of an image.
func (r *Runtime) beginPull(ctx context.Context, named reference.Named, auth *runtimeapi.AuthConfig) (*pull, error) {
	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	b := r.images.of(named)
	if b.Auth != "" && !brings(auth, b.Auth) {
		return nil, refused("pull image %q: authorization failed", named)
	}
	p := r.images.pulls[named.String()]
	if p == nil {
		p = &pull{ends: time.Now()}
		if _, here := r.images.byName[named.String()]; !here {
			p.ends = p.ends.Add(b.PullTime)
		}
		r.images.pulls[named.String()] = p
	}
	p.waiting++
	return p, nil
}

func (r *Runtime) endPullLocked(p *pull, named reference.Named) {
	name := named.String()
	r.dropPullLocked(p, named)
	p.over = true
	b := r.images.of(named)
	if b.Absent {
		p.err = status.Errorf(codes.NotFound, "fakecri: pull image %q: not found", name)
		return
	}
	if b.PullFails > 0 && r.images.failed[name] < b.PullFails || b.PullFails == 0 && b.PullError != "" {
		if b.PullFails > 0 {
			r.images.failed[name]++
		}
		text := b.PullError
		if text == "" {
			text = "fakecri: pull image " + name + ": configured failure"
		}
		// Unchanged, because the kubelet and package images match its prefix.
		p.err = status.Error(codes.Unknown, text)
		return
	}
	p.id = r.addImageLocked(named).id
}

func (r *Runtime) dropPullLocked(p *pull, named reference.Named) {
	if r.images.pulls[named.String()] == p {
		delete(r.images.pulls, named.String())
	}
}

// brings reports whether credentials equal "user:password".
func brings(auth *runtimeapi.AuthConfig, want string) bool {
	if auth.GetUsername()+":"+auth.GetPassword() == want {
		return true
	}
	plain, err := base64.StdEncoding.DecodeString(auth.GetAuth())
	return err == nil && string(plain) == want
}
