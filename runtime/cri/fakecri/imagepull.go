package fakecri

import (
	"context"
	"encoding/base64"
	"time"

	"github.com/distribution/reference"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A pull is one that is under way, for all who wait for the same image.
type pull struct {
	ends    time.Time
	waiting int
	over    bool
	id      string // of the image, or else
	err     error  // what came of it
}

// PullImage puts an image on the node and returns its ID. It takes as long as
// the image's PullTime, unless it is there already. Pulls of one image at one
// time are one, which ends early only if all of them are called off.
func (r *Runtime) PullImage(ctx context.Context, spec *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, sandbox *runtimeapi.PodSandboxConfig) (string, error) {
	c := Call{Method: "PullImage", Pod: sandbox.GetMetadata().GetUid(), Image: spec.GetImage()}
	return call(ctx, r, c, func(ctx context.Context) (string, error) {
		named, err := parseImage(spec.GetImage())
		if err != nil {
			return "", refused("pull image: name %q: %v", spec.GetImage(), err)
		}
		p, err := r.beginPull(ctx, named, auth)
		if err != nil {
			return "", err
		}
		err = pause(ctx, time.Until(p.ends))
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

// beginPull joins the pull of an image, or begins one.
func (r *Runtime) beginPull(ctx context.Context, named reference.Named, auth *runtimeapi.AuthConfig) (*pull, error) {
	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	b := r.images.of(named)
	if b.Auth != "" && !brings(auth, b.Auth) {
		return nil, refused("pull image %q: the registry does not let this user in", named)
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
			text = "fakecri: pull image " + name + ": it fails as its behaviour says"
		}
		// As it is, since the kubelet and we look at how it begins (img-9).
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

// brings reports whether credentials are "user:password".
func brings(auth *runtimeapi.AuthConfig, want string) bool {
	if auth.GetUsername()+":"+auth.GetPassword() == want {
		return true
	}
	plain, err := base64.StdEncoding.DecodeString(auth.GetAuth())
	return err == nil && string(plain) == want
}
