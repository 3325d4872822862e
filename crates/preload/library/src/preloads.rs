//! The list of libraries in `LD_PRELOAD`.

use crate::layout;

/// Removes this library from a list of libraries. Returns how many bytes of it, from the first, remain.
#[must_use]
pub fn without_this(list: &mut [u8]) -> usize {
    let is_end = |byte: &u8| b": ".contains(byte);
    let (mut kept, mut at) = (0, 0);
    while at < list.len() {
        let end = list[at..].iter().position(is_end).map_or(list.len(), |length| at + length);
        if end > at && !is_this(&list[at..end]) {
            // The separator of the previous one was read, so there is room.
            if kept > 0 {
                list[kept] = b':';
                kept += 1;
            }
            list.copy_within(at..end, kept);
            kept += end - at;
        }
        at = end + 1;
    }
    kept
}

fn is_this(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next();
    name.is_some_and(|name| name.starts_with(layout::LIBRARY.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_library_leaves_the_list() {
        for (list, left) in [
            ("/run/becalm/inject/becalm-preload-12-0.so", ""),
            ("/run/becalm/inject/becalm-preload-12-0.so:/usr/lib/other.so", "/usr/lib/other.so"),
            ("/a.so /x/becalm-preload-1-1.so b.so", "/a.so:b.so"),
            ("/a.so::/becalm-preload-1/b.so: ", "/a.so:/becalm-preload-1/b.so"),
            ("becalm-preload-1-0.so:/y/becalm-preload-2-0.so", ""),
            ("a:b:c", "a:b:c"),
            ("", ""),
        ] {
            let mut bytes = list.as_bytes().to_vec();
            let kept = without_this(&mut bytes);
            assert_eq!(core::str::from_utf8(&bytes[..kept]).unwrap(), left, "{list}");
        }
    }
}
