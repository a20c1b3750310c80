package output

import (
	"reflect"

	"github.com/triegs/triegs"
)

// termOf is a value that stands for one term as that term.
func termOf(v any) (triegs.Term, bool) {
	switch v := v.(type) {
	case int64:
		return triegs.Int(v), true
	case float64:
		return triegs.Float(v), true
	case string:
		return triegs.String(v), true
	case triegs.Term:
		return v, true
	}
	return triegs.Term{}, false
}

// appendPlainValue appends the value of a row as tsv shows it: one that stands for
// a term as that term, a list with its elements in braces, separated by commas.
func appendPlainValue(dst []byte, v any) []byte {
	if t, ok := termOf(v); ok {
		return AppendPlain(dst, t)
	}
	return appendList(dst, v, '{', '}', appendPlainValue)
}

// appendJSONValue appends the value of a row as JSON: a list is an array.
func appendJSONValue(dst []byte, v any) []byte {
	if v == nil {
		return append(dst, "null"...)
	}
	if t, ok := termOf(v); ok {
		return AppendJSON(dst, t)
	}
	return appendList(dst, v, '[', ']', appendJSONValue)
}

// appendList appends the elements of a slice of any type.
func appendList(dst []byte, v any, left, right byte, element func([]byte, any) []byte) []byte {
	list := reflect.ValueOf(v)
	dst = append(dst, left)
	if list.Kind() == reflect.Slice {
		for i := range list.Len() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = element(dst, list.Index(i).Interface())
		}
	}
	return append(dst, right)
}
