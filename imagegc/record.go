package imagegc

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
)

// A Record is what is known of an image over time (ig-5).
type Record struct {
	Image runtime.Image

	// FirstDetected is when the image was first seen on the node.
	FirstDetected time.Time

	// LastUsed is when somebody was last seen to use it; zero: never.
	LastUsed time.Time

	// PulledBy is the pod for which the image came, "default/web", as far as that is
	// known: of those that held it (Manager.HoldPod) before it was there.
	PulledBy string

	// Users are who uses it at present, in words: "container default/web[app]".
	Users []string

	// Volume: one of them has it mounted.
	Volume bool
}

// key tells records apart (ig-7).
func (r *Record) key() string { return keyOf(r.Image) }

func keyOf(i runtime.Image) string {
	if i.RuntimeHandler == "" {
		return i.ID
	}
	return i.ID + "," + i.RuntimeHandler
}

// name is what people know the image by.
func (r *Record) name() string {
	for _, names := range [][]string{r.Image.Tags, r.Image.Digests} {
		if len(names) > 0 {
			return names[0]
		}
	}
	return r.Image.ID
}

// Detect returns the records of the images that there are now, in the order of
// their keys: old ones carried on, those of images that are gone left out (ig-4,
// ig-5). It is a pure function.
//
// An ID that is used protects the image for every runtime handler (against ig-7,
// nq-9). A use that the runtime tells by ID counts for that ID, whatever its name
// means by now; one that has no more than a name counts for who has the name. Times
// that lie in the future are a clock's that was wrong, and count as now.
func Detect(old []Record, images []runtime.Image, uses []runtime.ImageUse, now time.Time) []Record {
	was := make(map[string]*Record, len(old))
	for i := range old {
		was[old[i].key()] = &old[i]
	}
	records := make([]Record, 0, len(images))
	at := make(map[string]bool, len(images))
	for _, image := range images {
		r := Record{Image: image, FirstDetected: now}
		if at[r.key()] {
			continue // listed twice
		}
		at[r.key()] = true
		if o := was[r.key()]; o != nil {
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
			if who := whose(use); !slices.Contains(r.Users, who) {
				r.Users = append(r.Users, who)
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

// whose says in words who uses an image.
func whose(use runtime.ImageUse) string {
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

// An index finds the images that a name or an ID is of.
type index map[string][]int

func newIndex(records []Record) index {
	ix := make(index, 3*len(records))
	for i := range records {
		for _, s := range spellings(&records[i]) {
			ix[s] = append(ix[s], i)
		}
	}
	return ix
}

// of returns the images that a use is of.
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
		return found // an ID, which could be read as a name
	}
	return ix[spelled(name)]
}
