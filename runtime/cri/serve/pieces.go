package serve

import (
	"google.golang.org/protobuf/proto"
)

// maxPiece is how large the items of one piece of a list get together, in bytes.
// A single item may be larger.
const maxPiece = 1 << 20

// inPieces sends a list in as many messages as it needs: none for an empty one.
func inPieces[T proto.Message](items []T, err error, send func([]T) error) error {
	if err != nil {
		return err
	}
	for len(items) > 0 {
		n, size := 1, proto.Size(items[0])
		for ; n < len(items); n++ {
			if size += proto.Size(items[n]); size > maxPiece {
				break
			}
		}
		if err := send(items[:n]); err != nil {
			return err
		}
		items = items[n:]
	}
	return nil
}
