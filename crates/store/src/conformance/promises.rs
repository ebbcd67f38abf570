//! The list of promises.

/// Makes each promise public, and a macro that turns them all into tests.
///
/// A promise that is missing here is dead code, so none is forgotten. (`$d` is a dollar sign, for the inner macro.)
macro_rules! promises {
    ($d:tt hint $hinting:ident: $hint:ident; $($module:ident: $($promise:ident,)+;)+) => {
        $(pub use super::$module::{$($promise,)+};)+
        pub use super::$hinting::$hint;

        /// Makes a test of every promise. Its argument opens two handles on the same new data by the clock it is given.
        /// With `deaf`, nothing is expected of the hints that others have written.
        #[macro_export]
        macro_rules! conformance_tests {
            ($d open:path) => {
                $crate::conformance_tests!($d open, deaf);

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $hint() {
                    let world = $crate::conformance::World::new($d open).await;
                    $crate::conformance::$hint(world).await;
                }
            };
            ($d open:path, deaf) => {
                $($(
                    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                    async fn $promise() {
                        let world = $crate::conformance::World::new($d open).await;
                        $crate::conformance::$promise(world).await;
                    }
                )+)+
            };
        }
    };
}

promises! { $
    hint notice: changes_of_another_handle_are_noticed_and_ones_own_are_not;
    appends:
        an_absent_thread_has_no_head_and_no_records,
        an_append_is_read_back_whole,
        heads_of_several_threads_come_in_the_order_asked_for,
        versions_of_several_threads_come_in_the_order_asked_for,
        a_second_append_follows_on_the_first,
        every_byte_and_the_key_of_a_payload_survive,
        a_stale_version_is_refused_and_nothing_changes,
        a_version_from_the_future_is_refused,
        a_thread_is_created_only_once,
        a_malformed_append_is_refused_and_nothing_changes,
        of_concurrent_appends_at_one_version_exactly_one_wins,
        appends_made_together_do_not_fail_together,
        records_are_read_after_a_point_and_up_to_a_limit,
        one_thread_id_in_two_tenants_is_two_threads,
        a_changed_cell_refuses_the_append_and_nothing_changes,
        an_append_may_depend_on_a_cell,
        an_append_changes_its_cells,
    ;
    leases:
        an_append_takes_the_lease_in_the_same_commit,
        a_lease_is_not_taken_before_its_end,
        a_lease_is_free_from_the_moment_it_ends,
        the_holder_itself_does_not_take_its_lease_twice,
        an_append_that_cannot_take_the_lease_changes_nothing,
        an_append_takes_only_the_lease_that_it_has_seen,
        a_driver_that_was_taken_over_is_fenced,
        a_driver_with_another_process_epoch_is_fenced,
        an_append_without_a_lease_is_accepted_while_another_drives,
        an_ended_lease_that_nobody_took_still_drives,
        a_renewed_lease_lasts_longer_and_never_shorter,
        a_lease_is_renewed_and_released_only_by_its_holder,
        a_lease_is_released_only_at_the_version_it_names,
        an_append_can_release_the_lease,
        a_released_lease_drives_no_more,
        lease_changes_leave_the_thread_as_it_is,
        a_thread_that_does_not_exist_has_no_lease,
        adopting_a_store_that_is_no_backup_changes_nothing,
        of_many_takers_exactly_one_wins,
    ;
    indexes:
        rows_come_in_the_order_of_key_then_sort_then_thread,
        a_scan_keeps_to_one_key,
        a_scan_keeps_to_rows_up_to_a_point,
        pages_of_a_scan_meet_without_gap_or_overlap,
        a_scan_goes_on_after_a_row_of_another_key,
        a_scan_backward_gives_the_rows_of_a_scan_forward_in_reverse,
        pages_of_a_scan_backward_meet_without_gap_or_overlap,
        a_row_put_twice_is_there_once,
        a_removed_row_is_gone_and_an_absent_one_may_be_removed,
        changes_of_one_append_happen_in_their_order,
        indexes_and_tenants_are_apart,
        only_tenants_with_rows_are_listed,
    ;
    cells:
        a_blob_is_kept_once_and_for_its_tenant_only,
        a_cell_is_created_once_and_changed_at_its_version,
        a_removed_cell_is_absent_and_its_versions_do_not_come_back,
        cells_of_other_tenants_spaces_and_keys_are_apart,
        of_concurrent_changes_to_a_cell_exactly_one_wins,
    ;
    amendments:
        an_amendment_changes_rows_and_cells_together,
        an_amendment_with_a_changed_cell_changes_nothing,
        an_amendment_of_rows_made_twice_is_made_once,
    ;
    endings:
        a_cell_is_there_until_it_ends_and_absent_from_that_moment_on,
        an_ended_cell_is_created_anew_and_its_versions_do_not_come_back,
        an_append_sees_an_ended_cell_as_absent,
        a_sweep_clears_away_what_has_ended_and_nothing_else,
        versions_of_a_swept_cell_do_not_come_back,
        what_is_left_of_a_removed_cell_is_swept_when_it_would_have_ended,
        cells_are_listed_in_the_order_of_their_keys,
        of_concurrent_changes_to_an_ended_cell_exactly_one_wins,
    ;
    moving:
        a_store_that_is_leaving_takes_nothing_until_that_is_given_up,
        a_part_in_a_move_changes_only_from_the_one_that_is_expected,
        a_store_that_is_arriving_takes_nothing_but_what_comes_by_its_ticket,
        what_is_imported_twice_is_there_once,
    ;
    notice:
        time_never_runs_backwards,
        each_handle_has_an_owner_of_its_own,
    ;
}
