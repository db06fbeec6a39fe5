package plan

import (
	"encoding/json"

	v1 "k8s.io/api/core/v1"
)

// Hash returns the mark that a container instance carries of the spec it was
// made from: two specs with different hashes are different definitions (rt-28,
// rt-30). Only name and image take part: all else of a container cannot be
// changed, or can be changed while it runs.
//
// The value is the kubelet's since 1.31 (rt-29), so that the containers of a
// node that was the kubelet's are not restarted, nor the other way round.
//
// It allocates nothing for names and images of plain characters.
func Hash(c *v1.Container) uint64 {
	var h hasher
	if plain(c.Image) && plain(c.Name) {
		h.open()
		h.add(`{"image":"`)
		h.add(c.Image)
		h.add(`","name":"`)
		h.add(c.Name)
		h.add(`"}`)
		return h.close()
	}
	doc, err := json.Marshal(struct {
		Image string `json:"image"`
		Name  string `json:"name"`
	}{c.Image, c.Name})
	if err != nil {
		return 0 // cannot happen: two strings. 0 reads as "unknown"
	}
	h.open()
	h.add(string(doc))
	return h.close()
}

// plain reports whether s stands in a JSON document as it is.
func plain(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ', c > '~', c == '"', c == '\\', c == '<', c == '>', c == '&':
			return false
		}
	}
	return true
}

// prime of FNV-1a.
const prime = 16777619

// A hasher is an FNV-1a hash of 32 bits in the making. What it is fed is not the
// document but a printed form of its bytes, "([]uint8)[123 34 …]", an accident of
// history that the value depends on.
type hasher struct {
	sum uint32
	sep byte // what stands before the next number
}

func (h *hasher) write(b byte) { h.sum = (h.sum ^ uint32(b)) * prime }

func (h *hasher) open() {
	h.sum, h.sep = 2166136261, '['
	for _, b := range []byte("([]uint8)") {
		h.write(b)
	}
}

// add feeds the numbers of the bytes of part.
func (h *hasher) add(part string) {
	sum, sep := h.sum, h.sep // kept close: this is most of what planning costs
	for i := range len(part) {
		b := part[i]
		sum = (sum ^ uint32(sep)) * prime
		sep = ' '
		if b >= 100 {
			sum = (sum ^ uint32('0'+b/100)) * prime
		}
		if b >= 10 {
			sum = (sum ^ uint32('0'+b/10%10)) * prime
		}
		sum = (sum ^ uint32('0'+b%10)) * prime
	}
	h.sum, h.sep = sum, sep
}

func (h *hasher) close() uint64 {
	h.write(']')
	return uint64(h.sum)
}
