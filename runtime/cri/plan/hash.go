package plan

import (
	"encoding/json"
	"hash/fnv"
	"strconv"

	v1 "k8s.io/api/core/v1"
)

// Hash returns the mark that a container instance carries of the spec it was
// made from: two specs with different hashes are different definitions (rt-28,
// rt-30). Only name and image take part: all else of a container cannot be
// changed, or can be changed while it runs.
//
// The value is the kubelet's since 1.31 (rt-29), so that the containers of a
// node that was the kubelet's are not restarted, nor the other way round.
func Hash(c *v1.Container) uint64 {
	doc, err := json.Marshal(struct {
		Image string `json:"image"`
		Name  string `json:"name"`
	}{c.Image, c.Name})
	if err != nil {
		return 0 // cannot happen: two strings. 0 reads as "unknown"
	}
	// What is hashed is not the document but a printed form of its bytes, an
	// accident of history that the value depends on.
	text := append(make([]byte, 0, 16+4*len(doc)), "([]uint8)["...)
	for i, b := range doc {
		if i > 0 {
			text = append(text, ' ')
		}
		text = strconv.AppendUint(text, uint64(b), 10)
	}
	text = append(text, ']')
	h := fnv.New32a()
	h.Write(text)
	return uint64(h.Sum32())
}
