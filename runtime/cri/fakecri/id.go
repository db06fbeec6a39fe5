package fakecri

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
)

// idLength is the number of hexadecimal digits of an ID.
const idLength = 64

func newIDs(seed uint64) *rand.ChaCha8 {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	return rand.NewChaCha8(key)
}

// newIDLocked returns a new ID in the format of containerd.
func (r *Runtime) newIDLocked() string {
	var raw [idLength / 2]byte
	_, _ = r.ids.Read(raw[:]) // never fails
	return hex.EncodeToString(raw[:])
}
