package serve

import (
	"google.golang.org/protobuf/proto"
)

// maxPiece is the maximum size in bytes of the items in one message of a streamed
// list. A single item may be larger.
const maxPiece = 1 << 20

// inPieces sends a list in as many messages as necessary; none if it is empty.
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
