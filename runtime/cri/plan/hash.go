package plan

import (
	"encoding/json"

	v1 "k8s.io/api/core/v1"
)

// Hash returns the hash of a container's spec that its instances store. An instance with
// another hash is replaced (rules rt-28, rt-30). Only name and image are hashed: the other
// fields are immutable or can be changed while the container runs.
//
// It is the value of the kubelet since 1.31 (rule rt-29), so containers are not restarted
// when a node changes from or to the kubelet.
//
// It does not allocate if name and image need no escapes in JSON.
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
		return 0 // does not happen with two strings; 0 means unknown
	}
	h.open()
	h.add(string(doc))
	return h.close()
}

// plain reports whether s needs no escapes in JSON.
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

// A hasher computes a 32-bit FNV-1a hash. Its input is not the document but the form in
// which the kubelet prints its bytes, "([]uint8)[123 34 …]".
type hasher struct {
	sum uint32
	sep byte // written before the next number
}

func (h *hasher) write(b byte) { h.sum = (h.sum ^ uint32(b)) * prime }

func (h *hasher) open() {
	h.sum, h.sep = 2166136261, '['
	for _, b := range []byte("([]uint8)") {
		h.write(b)
	}
}

// add hashes the bytes of part as decimal numbers.
func (h *hasher) add(part string) {
	sum, sep := h.sum, h.sep // in registers: hashing dominates the cost of Compute
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
