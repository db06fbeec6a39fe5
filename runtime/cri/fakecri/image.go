package fakecri

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/distribution/reference"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// images are those that are on the node, and what is known of others. Runtime.mu
// guards them.
type images struct {
	said   map[string]*ImageBehaviour // by full name, as byFullName makes it
	here   chain[*image]              // by ID, without "sha256:"
	byName map[string]*image          // tags and digests
	pulls  map[string]*pull           // under way, by full name
	failed map[string]int             // pulls that failed, by full name, of images of which so many are to fail
	past   undo[*runtimeapi.Image]
}

// An image is one that is on the node.
type image struct {
	id            string
	tags, digests []string // full names, in the order in which they came
	layers        []Layer  // each with a name
	behaviour     *ImageBehaviour
	item          *runtimeapi.Image // as it is shown; replaced, never changed
}

// defaultLayer is the size of an image of which nothing is said.
const defaultLayer = 1 << 20

func newImages(behaviours map[string]ImageBehaviour) images {
	said, _ := byFullName(behaviours) // Config.check has seen the error
	return images{said: said, byName: map[string]*image{}, pulls: map[string]*pull{}, failed: map[string]int{}}
}

// of returns what is said of an image.
func (i *images) of(named reference.Named) *ImageBehaviour {
	if b := said(i.said, named); b != nil {
		return b
	}
	return new(ImageBehaviour)
}

// addPresentLocked puts those on the node that are there from the beginning.
func (r *Runtime) addPresentLocked() {
	for _, name := range slices.Sorted(maps.Keys(r.cfg.Images)) {
		if named, err := parseImage(name); err == nil && r.cfg.Images[name].Present {
			r.addImageLocked(named)
		}
	}
}

// addImageLocked puts an image on the node, or one more name of it.
func (r *Runtime) addImageLocked(named reference.Named) *image {
	manifest := digestOf(named)
	id := imageID(manifest)
	img, err := r.images.here.find(bareID(id))
	if err != nil {
		img = &image{id: id, behaviour: r.images.of(named)}
		for i, l := range img.behaviour.Layers {
			if l.Name == "" {
				l.Name = id + "/" + strconv.Itoa(i)
			}
			img.layers = append(img.layers, l)
		}
		if len(img.layers) == 0 {
			img.layers = []Layer{{Name: id, Size: defaultLayer}}
		}
		r.images.here.add(bareID(id), img)
	}
	if _, ok := named.(reference.Tagged); ok && !slices.Contains(img.tags, named.String()) {
		img.tags = append(img.tags, named.String())
		r.images.byName[named.String()] = img
	}
	if digest := named.Name() + "@" + manifest; !slices.Contains(img.digests, digest) {
		img.digests = append(img.digests, digest)
		r.images.byName[digest] = img
	}
	r.noteImageLocked(img)
	img.item = &runtimeapi.Image{
		Id: id, RepoTags: slices.Clone(img.tags), RepoDigests: slices.Clone(img.digests), Pinned: img.behaviour.Pinned,
	}
	for _, l := range img.layers {
		img.item.Size += l.Size
	}
	if uid, name, isUID := userOf(img.behaviour.User); isUID {
		img.item.Uid = &runtimeapi.Int64Value{Value: uid}
	} else {
		img.item.Username = name
	}
	return img
}

// noteImageLocked remembers what an image looked like until now.
func (r *Runtime) noteImageLocked(img *image) {
	if r.past.kept {
		r.images.past.note(img.id, img.item)
	}
}

// findImageLocked returns the image of a name or ID, or of the beginning of an
// ID; nil if there is none. A beginning that is not the only one is an error.
func (r *Runtime) findImageLocked(name string) (*image, error) {
	if !strings.HasPrefix(name, "sha256:") {
		if named, err := parseImage(name); err == nil {
			if img, ok := r.images.byName[named.String()]; ok {
				return img, nil
			}
		}
	}
	img, err := r.images.here.find(bareID(name))
	switch {
	case err == nil:
		return img, nil
	case errors.Is(err, errNoSuchID) || name == "sha256:":
		return nil, nil
	}
	return nil, refused("image %q: %v", name, err)
}

func bareID(id string) string { return strings.TrimPrefix(id, "sha256:") }

// A resolved image is what a container was made of.
type resolved struct {
	spec   *runtimeapi.ImageSpec // as statuses show it: by its name
	ref    string                // with its digest
	id     string
	names  []string // of the image
	layers []Layer
}

// resolveLocked finds an image that is there.
func (r *Runtime) resolveLocked(spec *runtimeapi.ImageSpec) (resolved, error) {
	img, err := r.findImageLocked(spec.GetImage())
	if err != nil {
		return resolved{}, err
	}
	if img == nil {
		return resolved{}, status.Errorf(codes.NotFound, "fakecri: image %q not found", spec.GetImage())
	}
	if len(img.tags) > 0 {
		spec = &runtimeapi.ImageSpec{Image: img.tags[0]}
	}
	return resolved{spec: spec, ref: img.digests[0], id: img.id, names: img.tags, layers: img.layers}, nil
}

// ListImages lists what is on the node, in the order in which it came. The filter
// is ignored: containerd 2.4 was seen to do that.
func (r *Runtime) ListImages(ctx context.Context, _ *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error) {
	return callAged(ctx, r, Call{Method: "ListImages"}, func(ctx context.Context, age time.Duration) ([]*runtimeapi.Image, error) {
		if err := r.begin(ctx); err != nil {
			return nil, err
		}
		defer r.mu.Unlock()
		var was map[string]*runtimeapi.Image
		if age > 0 {
			was = r.images.past.since(age)
		}
		var list []*runtimeapi.Image
		add := func(item *runtimeapi.Image) {
			if item != nil {
				list = append(list, item)
			}
		}
		for img := range r.images.here.all() {
			item, changed := was[img.id]
			if !changed {
				item = img.item
			}
			delete(was, img.id)
			add(item)
		}
		for _, id := range slices.Sorted(maps.Keys(was)) { // those that are gone
			add(was[id])
		}
		return list, nil
	})
}

// ImageStatus tells of the image with a name or ID. One that is not there is no
// error, and no image.
func (r *Runtime) ImageStatus(ctx context.Context, spec *runtimeapi.ImageSpec, verbose bool) (*runtimeapi.ImageStatusResponse, error) {
	return call(ctx, r, Call{Method: "ImageStatus", Image: spec.GetImage()}, func(ctx context.Context) (*runtimeapi.ImageStatusResponse, error) {
		if err := r.begin(ctx); err != nil {
			return nil, err
		}
		defer r.mu.Unlock()
		img, err := r.findImageLocked(spec.GetImage())
		if err != nil {
			return nil, err
		}
		if img == nil {
			return &runtimeapi.ImageStatusResponse{}, nil
		}
		resp := &runtimeapi.ImageStatusResponse{Image: img.item}
		if verbose {
			resp.Info = map[string]string{"info": infoOf(map[string]any{"layers": img.layers, "user": img.behaviour.User})}
		}
		return resp, nil
	})
}

// RemoveImage removes an image with all its names, also if containers were made
// of it: then its layers take space until the last of them is removed. One that
// is not there is no error.
func (r *Runtime) RemoveImage(ctx context.Context, spec *runtimeapi.ImageSpec) error {
	return act(ctx, r, Call{Method: "RemoveImage", Image: spec.GetImage()}, func(ctx context.Context) error {
		if err := r.begin(ctx); err != nil {
			return err
		}
		defer r.unlock()
		img, err := r.findImageLocked(spec.GetImage())
		if img == nil {
			return err
		}
		for _, name := range slices.Concat(img.tags, img.digests) {
			delete(r.images.byName, name)
		}
		r.images.here.remove(bareID(img.id))
		r.noteImageLocked(img)
		return nil
	})
}
