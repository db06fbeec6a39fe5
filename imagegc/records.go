package imagegc

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Record is an image and the history of its use.
type Record struct {
	Image runtime.Image

	// FirstDetected is when the image was first listed on the node.
	FirstDetected time.Time

	// LastUsed is when the image was last found in use. Zero if it never was.
	LastUsed time.Time

	// PulledBy is the pod that the image was pulled for, "default/web": the first one that
	// held it (Manager.AcquireImages) before it was present. Empty if unknown.
	PulledBy string

	// Users describes the current users of the image: "container default/web[app]".
	Users []string

	// Volume is true if a user mounts the image as a volume.
	Volume bool
}

// key identifies the record; runtimes may store an image for each runtime handler.
func (r *Record) key() string { return keyOf(r.Image) }

func keyOf(i runtime.Image) string {
	if i.RuntimeHandler == "" {
		return i.ID
	}
	return i.ID + "," + i.RuntimeHandler
}

// name returns the first tag, else the first digest, else the ID.
func (r *Record) name() string {
	for _, names := range [][]string{r.Image.Tags, r.Image.Digests} {
		if len(names) > 0 {
			return names[0]
		}
	}
	return r.Image.ID
}

// detect returns the records of the present images, by key: old ones are updated, those of
// removed images dropped. It is a pure function.
//
// An ID in use protects the image for every runtime handler. A use with an ID applies to that
// ID, even if its name refers to another image now; one with only a name applies to the image
// of that name. Times in the future, after a change of the clock, count as now.
func detect(old []Record, images []runtime.Image, uses []runtime.ImageUse, now time.Time) []Record {
	previous := make(map[string]*Record, len(old))
	for i := range old {
		previous[old[i].key()] = &old[i]
	}
	records := make([]Record, 0, len(images))
	listed := make(map[string]bool, len(images))
	for _, image := range images {
		r := Record{Image: image, FirstDetected: now}
		if listed[r.key()] {
			continue // listed twice
		}
		listed[r.key()] = true
		if o := previous[r.key()]; o != nil {
			r.FirstDetected, r.LastUsed, r.PulledBy = earlier(o.FirstDetected, now), earlier(o.LastUsed, now), o.PulledBy
		}
		records = append(records, r)
	}
	slices.SortFunc(records, func(a, b Record) int { return cmp.Compare(a.key(), b.key()) })

	index := newIndex(records)
	for _, use := range uses {
		for _, i := range index.of(use) {
			r := &records[i]
			r.LastUsed = now
			r.Volume = r.Volume || use.Volume
			if user := userOf(use); !slices.Contains(r.Users, user) {
				r.Users = append(r.Users, user)
			}
		}
	}
	return records
}

func earlier(t, now time.Time) time.Time {
	if t.After(now) {
		return now
	}
	return t
}

// userOf describes the user of an image.
func userOf(use runtime.ImageUse) string {
	switch {
	case use.Container == "" && use.Pod == "":
		return "a pod that is being started"
	case use.Container == "":
		return fmt.Sprintf("pod %s/%s", use.Namespace, use.Pod)
	case use.Volume:
		return fmt.Sprintf("a volume of container %s/%s[%s]", use.Namespace, use.Pod, use.Container)
	default:
		return fmt.Sprintf("container %s/%s[%s]", use.Namespace, use.Pod, use.Container)
	}
}

// An index finds the images with a name or ID.
type index map[string][]int

func newIndex(records []Record) index {
	ix := make(index, 3*len(records))
	for i := range records {
		for _, s := range references(&records[i]) {
			ix[s] = append(ix[s], i)
		}
	}
	return ix
}

// of returns the images of a use.
func (ix index) of(use runtime.ImageUse) (found []int) {
	for _, id := range []string{use.ID, use.Ref} {
		if id != "" {
			found = append(found, ix.find(id)...)
		}
	}
	if len(found) == 0 && use.Name != "" {
		found = ix.find(use.Name)
	}
	return found
}

func (ix index) find(name string) []int {
	if found := ix[strings.TrimPrefix(name, "sha256:")]; len(found) > 0 {
		return found // an ID, which could be parsed as a name
	}
	return ix[normalize(name)]
}
